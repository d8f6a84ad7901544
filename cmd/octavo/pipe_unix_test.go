//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/safetensors"
)

// startClosed starts the command in a directory, with a standard output that nobody reads.
func startClosed(t *testing.T, dir, stdin string, args ...string) *process {
	t.Helper()
	p := prepare(t, "", append(args, "--progress", "none")...)
	p.Dir = dir
	in, err := os.Open(stdin)
	require.NoError(t, err)
	defer in.Close()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	read.Close()
	defer write.Close()
	p.Stdin, p.Stdout = in, write
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// TestClosedOutputCostsNoFile checks that a reader of standard output that has enough, as
// head has, costs none of the files that were asked for, and is no error.
func TestClosedOutputCostsNoFile(t *testing.T) {
	file := filetest.Write(t, nil,
		filetest.Raw("x", safetensors.F8E4M3, []int{1, 2}, 1, 2), filetest.F32("s", []int{1, 1}, 1),
		filetest.F32("c", []int{1, 1}, 0), filetest.F32("w", []int{2, 2}, 1, 2, 3, 4))
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("to be or not to be, ", 3000)), 0o666))
	operands := []string{"--a", "x", "--a-scales", "s", "--a-block", "row", "--b", "x", "--b-scales", "s", "--b-block", "row"}
	training := []string{"train", "--text", text, "--dim", "16", "--heads", "2", "--layers", "1", "--hidden", "16",
		"--context", "16", "--batch", "2", "--steps", "2"}
	for name, c := range map[string]struct {
		args  []string
		files []string
	}{
		"quantize": {[]string{"quantize", file, "-o", "out", "--profile", "te-block", "--only", "w"}, []string{"out"}},
		"gemm":     {append([]string{"gemm", file, "-o", "out"}, operands...), []string{"out"}},
		"verify": {append([]string{"verify", file, "--got", "c.safetensors", "--html", "page.html"}, operands...),
			[]string{"page.html"}},
		"audit": {[]string{"audit", "--case", "onnxruntime-31155", "--worst", "worst", "--operands", "better"}, []string{"worst", "better"}},
		"train": {append(training, "-o", "run"), []string{"run/index.html", "run/curves.csv", "run/telemetry.csv"}},
		"lab":   {[]string{"lab", "memory", "--short", "--text", text, "-o", "run"}, []string{"run/memory.html"}},
		"bench": {[]string{"bench", "--time", "1us", "--level", "generic", "--shapes", "64x64x64", "-o", "run"},
			[]string{"run/bench.json", "run/roofline.svg"}},
		"report":   {[]string{"report", "trained", "-o", "page.html"}, []string{"page.html"}},
		"demo":     {[]string{"demo", "run"}, []string{"run/model.safetensors", "run/layer.safetensors"}},
		"plan":     {[]string{"plan", "llama-3-8b", "--html", "page.html"}, []string{"page.html"}},
		"identify": {[]string{"identify", "-o", "probes", "--k", "64"}, []string{"probes"}},
		"vectors":  {[]string{"vectors", "-o", "run"}, []string{"run/SHA256SUMS", "run/README.md"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if name == "verify" {
				succeed(t, append([]string{"gemm", file, "-o", filepath.Join(dir, "c.safetensors")}, operands...)...)
			}
			if name == "report" {
				succeed(t, append(training, "-o", filepath.Join(dir, "trained"))...)
			}
			p := startClosed(t, dir, os.DevNull, c.args...)
			require.Equal(t, exitOK, p.wait(t), "%s", &p.stderr)
			require.NotContains(t, p.stderr.String(), "pipe")
			for _, name := range c.files {
				require.FileExists(t, filepath.Join(dir, name))
			}
			require.Empty(t, matches(t, dir, ".octavo-*"))
		})
	}
}

// TestClosedOutputEndsTheRest checks that commands end soon, and without a word, that have
// nothing to do but to write to standard output.
func TestClosedOutputEndsTheRest(t *testing.T) {
	file := filetest.Write(t, nil, filetest.F32("w", []int{2, 2}, 1, 2, 3, 4))
	for name, args := range map[string][]string{
		"encode":   {"encode", "--format", "e4m3"}, // from a device without an end
		"decode":   {"decode", "--format", "e4m3"},
		"inspect":  {"inspect", file},
		"json":     {"inspect", file, "--json"},
		"version":  {"version"},
		"help":     {"--help"},
		"selftest": {"selftest", "--time", "1ms"},
		"serve":    {"serve"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startClosed(t, t.TempDir(), "/dev/zero", args...)
			require.Equal(t, exitOK, p.wait(t), "%s", &p.stderr)
			require.Empty(t, p.stderr.String())
		})
	}
}
