package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// found runs a command that finds something: it prints that first, and as a line on standard error.
func found(t *testing.T, verdict string, args ...string) {
	t.Helper()
	r := octavo(strings.NewReader(""), args...)
	require.Equal(t, exitData, r.status)
	require.Regexp(t, `^\S+`+verdict+` `, unbroken(r.stdout))
	require.Regexp(t, `^octavo: [^\n]*`+verdict+`\n$`, r.stderr)
}

// TestLint checks statuses and what is printed, of a model with one defect of each severity.
func TestLint(t *testing.T) {
	sound := filetest.Write(t, map[string]string{"format": "pt"}, filetest.F32("a.weight", []int{1, 1}, 1))
	require.Regexp(t, `^\S+: clean: 1 tensor in 1 file, f32, by \d+ rules$`, unbroken(succeed(t, "lint", sound)))

	warned := filetest.Write(t, nil, filetest.F32("a.weight", []int{1, 1}, 1))
	found(t, ": 1 warning in 1 file", "lint", warned)
	succeed(t, "lint", warned, "--fail-on", "error")
	succeed(t, "lint", warned, "--skip", "metadata-format")

	wrong := filetest.Write(t, nil, filetest.Raw("a.weight", safetensors.F8E4M3, []int{1, 2}, 0x7E, 2))
	found(t, ": 1 error, 1 warning in 1 tensor and 1 file", "lint", wrong, "--headers")
	succeed(t, "lint", wrong, "--fail-on", "none")
	require.Contains(t, succeed(t, "lint", wrong, "--fail-on", "none"), `E scale-missing
  a.weight in `+filepath.Base(wrong)+`
    F8_E4M3 [1 2] has no scale
  so:   the loader takes 1, or what happens to be in memory, for the scale
  mend: quantize the weight again, or restore the scale
  in:   vLLM, SGLang, transformers
`)
	var report struct {
		Rules    []string
		Findings []struct {
			Rule, Severity, Consequence, Mend string
			Tensors, Loaders                  []string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "lint", wrong, "--json", "--fail-on", "none")), &report))
	require.Len(t, report.Findings, 2)
	require.Equal(t, "E", report.Findings[0].Severity)
	require.Equal(t, []string{"a.weight"}, report.Findings[0].Tensors)
	require.Contains(t, report.Rules, "codes-nan")

	require.Contains(t, succeed(t, "lint", "--rules"), "E* scale-invalid\n     a scale is NaN")
	var table struct {
		Rules []struct {
			ID, Title, Severity, Consequence, Mend string
			Data                                   bool
			Loaders, Sources                       []string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "lint", "--rules", "--json")), &table))
	require.Len(t, table.Rules, strings.Count(succeed(t, "lint", "--rules"), "seen in "))
	reads := map[string]bool{}
	for _, r := range table.Rules {
		require.NotContains(t, []string{r.Title, r.Consequence, r.Mend}, "", r.ID)
		require.Regexp(t, "^[EWI]$", r.Severity, r.ID)
		require.NotEmpty(t, r.Sources, r.ID)
		require.NotEmpty(t, r.Loaders, r.ID)
		reads[r.ID] = r.Data
	}
	require.True(t, reads["scale-invalid"])
	require.False(t, reads["scale-missing"])
	fail(t, 2, "want one checkpoint", "lint")
	fail(t, 2, "want one checkpoint", "lint", sound, wrong)
	fail(t, 2, `there is no rule "none"`, "lint", sound, "--skip", "none")
	fail(t, 2, "want warning or error or info or none", "lint", sound, "--fail-on", "W")
	fail(t, 2, "want a whole number", "lint", sound, "--tensor-parallel", "0")
	fail(t, 1, "no such file", "lint", sound+"absent")
	fail(t, 1, "it has no index and no .safetensors file", "lint", t.TempDir())
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), []byte("text"), 0o600))
	found(t, ": 1 error in 1 file", "lint", dir)
	fail(t, 1, "; directories in it that have: 001, 002, 003, "+filepath.Base(dir), "lint", filepath.Dir(dir))
}
