//go:build unix

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
)

// TestSignalsStopLab checks that a run that is stopped keeps the experiments that were
// finished.
func TestSignalsStopLab(t *testing.T) {
	if testing.Short() {
		t.Skip("the first experiment takes a while under an emulator")
	}
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dir := filepath.Join(t.TempDir(), "run")
		p := start(t, "", "lab", "all", "--short", "--text", labText(t), "-o", dir)
		eventually(t, func() bool { return len(matches(t, dir, ".octavo-partial", "parity.json")) == 1 })
		require.NoError(t, p.Process.Signal(s))
		require.Equal(t, 128+int(s), p.wait(t), "%v: %s", s, &p.stderr)
		require.Regexp(t, `^octavo: stopped by .*: the \d+ of \d+ experiments that were finished are in `, p.stderr.String())
		run, err := outdir.Read(dir)
		require.NoError(t, err)
		require.Contains(t, run.Files, "parity.html")
		require.Contains(t, run.Files, "index.html")
		require.NotContains(t, run.Files, "reduction.html")
		index, err := os.ReadFile(filepath.Join(dir, "index.html"))
		require.NoError(t, err)
		require.Regexp(t, `not done: .*reduction, .*fp4, attention\b`, string(index))
		require.Empty(t, matches(t, dir, ".octavo-*"))
		require.Regexp(t, `\n\d+ of \d+ goals met[^.]*\.\n$`, p.stdout.String())
	}
}

// closedPipe is what is left of standard output when its reader has gone.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// TestLabIntoAClosedPipe goes on to write its files.
func TestLabIntoAClosedPipe(t *testing.T) {
	dir := t.TempDir()
	var stderr bytes.Buffer
	args := []string{"--quiet", "lab", "accumulation", "--short", "--text", labText(t), "-o", dir}
	require.Zero(t, run(args, strings.NewReader(""), closedPipe{}, &stderr), "%s", &stderr)
	require.Empty(t, stderr.String())
	require.FileExists(t, filepath.Join(dir, "accumulation.html"))
}
