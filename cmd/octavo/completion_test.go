package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		require.Contains(t, succeed(t, "completion", shell), "__complete")
	}
	fail(t, 2, `there is no command "csh"`, "completion", "csh")
}

// TestCompletions asks for completions as the scripts do.
func TestCompletions(t *testing.T) {
	for line, want := range map[string][]string{
		"quan":                {"quantize\t", ":4"},
		"encode --format ":    {"e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz", ":4"},
		"encode --round ":     {"nearest", "zero", "stochastic", ":4"},
		"encode --ro":         {"--round\t", ":4"},
		"encode --seed ":      {":4"},
		"quantize ":           {"safetensors", ":8"},
		"quantize --profile ": {"deepseek", "te-block", ":4"},
		"quantize x -o ":      {":0"},
		"convert ":            {":16"},
		"convert --to ":       {"deepseek-v3", "gpt-oss", ":4"},
		"evaluate ":           {"safetensors", ":8"},
		"evaluate --recipe ":  {"fp8", "mx-floor", ":4"},
		"evaluate --mode ":    {"weights", "both", ":4"},
		"convert --profile ":  {"autofp8", "deepgemm", ":4"},
		"vectors -o ":         {":16"},
		"gemm --a-scales ":    {"npy", ":8"},
		"verify --model ":     {"hopper-wgmma", "exact", ":4"},
		"verify attention ":   {"safetensors", ":8"},

		"verify attention --inject ": {"rescale-dropped", "none", ":4"},

		"lab ":                {"parity", "all", ":4"},
		"report ":             {":16"},
		"plan ":               {"deepseek-v3", "llama-3-70b", ":0"},
		"plan --recipe ":      {"octavo", "deepseek-v3", ":4"},
		"version ":            {":4"},
		"inspect --progress ": {"auto", "bar", "plain", "none", ":4"},
		"bench --level ":      {"generic", ":4"},
		"train --text ":       {":0"},
	} {
		words := strings.Split(line, " ")
		r := octavo(strings.NewReader(""), append([]string{"__complete"}, words...)...)
		require.Equal(t, 0, r.status, r.stderr)
		lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
		for _, w := range want {
			found := false
			for _, l := range lines {
				found = found || l == w || strings.HasSuffix(w, "\t") && strings.HasPrefix(l, w)
			}
			require.True(t, found, "%s: want %q in %q", line, w, lines)
		}
	}
}
