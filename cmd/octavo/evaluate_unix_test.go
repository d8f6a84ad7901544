//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/nn/evaluate"
)

// TestEvaluateIsResumed kills an evaluation and stops one: both go on to the report of one that was
// left alone, and to no other's.
func TestEvaluateIsResumed(t *testing.T) {
	_, dir, text := byteModel(t)
	line := []string{"evaluate", dir, "--text", text, "--recipe", "fp8,mxfp4,nvfp4-te", "--context", "16"}
	want := succeed(t, append(line, "--json")...)
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		out := filepath.Join(t.TempDir(), "out")
		line := append(line, "-o", out)
		p := start(t, "", line...)
		state := filepath.Join(out, ".octavo-partial", evaluate.StateName)
		eventually(t, func() bool {
			_, err := os.Stat(state)
			return err == nil
		})
		require.NoError(t, p.Process.Signal(signal))
		if status := p.wait(t); signal == syscall.SIGKILL {
			require.Equal(t, -int(signal), status)
		} else {
			require.Equal(t, 128+int(signal), status)
			require.Equal(t, "octavo: stopped by Ctrl-C: what was done is in "+out+": go on with --resume\n", p.stderr.String())
		}
		fail(t, exitUsage, out+" has an evaluation that was cut off: go on with --resume, or start again with --overwrite", line...)
		line = append(line, "--resume")
		fail(t, exitUsage, "--resume goes on with an evaluation and --overwrite replaces it", append(line, "--overwrite")...)
		fail(t, exitData, `evaluate-state.json: it is of other recipes: "fp8" "mxfp4" "nvfp4-te": start again with --overwrite`, append(line, "--recipe", "bf16")...)
		model := filepath.Join(dir, "model.safetensors")
		touched, err := os.Stat(model)
		require.NoError(t, err)
		require.NoError(t, os.Chtimes(model, touched.ModTime(), touched.ModTime().Add(1)))
		fail(t, exitData, "it is of another model: start again with --overwrite", line...)
		require.NoError(t, os.Chtimes(model, touched.ModTime(), touched.ModTime()))

		require.Equal(t, want, succeed(t, append(line, "--json")...))
		written, err := os.ReadFile(filepath.Join(out, resultFile))
		require.NoError(t, err)
		require.Equal(t, want, string(written))
		require.ElementsMatch(t, []string{pageFile, resultFile, outdir.ManifestName}, entriesOf(t, out))
		fail(t, exitUsage, "it holds a run already, and none that was cut off", line...)
		fail(t, exitUsage, "it holds a run already: name another directory with -o", line[:len(line)-1]...)
	}
	fail(t, exitUsage, "--resume and --overwrite are about the run in a directory: name it with -o", append(line, "--resume")...)

	out := filepath.Join(t.TempDir(), "out")
	fail(t, exitData, "token 0 of the text is 256", "evaluate", dir, "--tokens", writeText(t, "256 1"), "-o", out)
	require.NoDirExists(t, out, "nothing is left of what has not begun")
	require.NotEmpty(t, strings.TrimSpace(want))
}

// TestEvaluateBudgetIsResumed kills an evaluation that judges what it chose: it goes on to the report of
// one that was left alone.
func TestEvaluateBudgetIsResumed(t *testing.T) {
	_, dir, text := byteModel(t)
	line := []string{"evaluate", dir, "--text", text, "--recipe", "mxfp4,mxfp8,bf16", "--context", "16", "--budget", "6bits", "--layer-tokens", "64"}
	want := succeed(t, append(line, "--json")...)
	out := filepath.Join(t.TempDir(), "out")
	line = append(line, "-o", out)
	p := start(t, "", line...)
	eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(out, ".octavo-partial", "judge", evaluate.StateName))
		return err == nil
	})
	require.NoError(t, p.Process.Kill())
	require.Equal(t, -int(syscall.SIGKILL), p.wait(t))
	fail(t, exitUsage, "has an evaluation that was cut off", line...)
	fail(t, exitData, "it is of another text", "evaluate", dir, "--text", text, "--recipe", "mxfp4", "--context", "16", "-o", out, "--resume")
	require.Equal(t, want, succeed(t, append(line, "--json", "--resume")...))
	require.ElementsMatch(t, []string{pageFile, resultFile, outdir.ManifestName}, entriesOf(t, out))
}

// writeText writes a text to a file.
func writeText(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}
