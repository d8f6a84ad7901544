package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTrainRules: a rule that ends a run does so with one line, and with its files.
func TestTrainRules(t *testing.T) {
	rules := filepath.Join(t.TempDir(), "my rules.toml")
	write := func(text string) {
		require.NoError(t, os.WriteFile(rules, []byte(text), 0o644))
	}
	write("[[rule]]\nseries = 'gradient-norm'\nleast = 1\nthreshold = 1e-9\naction = 'stop'\n")
	status, out, stdout, stderr := trainSmall(t, "--rules", rules, "--steps", "20")
	require.Equal(t, 1, status)
	require.Regexp(t, `^octavo: rule 1 stopped the run: step \d+: gradient-norm is \S+, the median before is \S+\n$`, stderr)
	require.Contains(t, stdout, "Rules that held, and what was done: 1\nstep ")
	page, err := os.ReadFile(filepath.Join(out, "index.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "--rules &#39;"+rules+"&#39;")
	require.Contains(t, string(page), "<h2>Rules</h2>")

	status, _, stdout, stderr = trainSmall(t, "--rules", "default")
	require.Zero(t, status, stderr)
	require.NotContains(t, stdout, "Rules that held")

	write("[[rule]]\nseries = 'gradient norm'\n")
	status, _, _, stderr = trainSmall(t, "--rules", rules)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, rules+": line 2, column 10: unknown series \"gradient norm\": want one of loss, gradient-norm, ")
	status, _, _, stderr = trainSmall(t, "--rules", rules+".no")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, rules+".no")

	// A run with rules goes on, and reads them again; others are refused.
	write("[[rule]]\nseries = 'gradient-norm'\nleast = 1\nthreshold = 1e-9\n")
	out = filepath.Join(t.TempDir(), "kept")
	kept := []string{"--out", out, "--checkpoint-every", "3", "--checkpoint-sync"}
	status, _, want, stderr := trainSmall(t, append(kept, "--rules", rules)...)
	require.Zero(t, status, stderr)
	require.Contains(t, want, "Rules that held, and what was done: ")
	status, _, got, stderr := trainSmall(t, "--out", out, "--resume")
	require.Zero(t, status, stderr)
	require.Equal(t, times.ReplaceAllString(want, ""), times.ReplaceAllString(got, ""))
	write("[[rule]]\nseries = 'loss'\n")
	status, _, _, stderr = trainSmall(t, "--out", out, "--resume")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "octavo: --rules: they are not the 1 rules that "+out)
}
