//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
)

// TestTrainLive reads a run while it is written, kills it, reads what it left, goes on with it and
// lets it end.
func TestTrainLive(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds before there is something to see")
	}
	dir := t.TempDir()
	out, text := filepath.Join(dir, "run"), filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("round and round the rugged rock. ", 50)), 0o644))
	args := func(more ...string) []string {
		return append([]string{"train", "--text", text, "-o", out, "--batch", "2", "--context", "16", "--dim", "16", "--layers", "1", "--heads", "2", "--hidden", "24"}, more...)
	}
	page := filepath.Join(out, "live.html")
	seen := func(p *process) string {
		require.Eventually(t, func() bool { _, err := os.Stat(filepath.Join(out, "live.json")); return err == nil }, time.Minute, 10*time.Millisecond, p.stderr.String())
		html, err := os.ReadFile(page)
		require.NoError(t, err)
		return string(html)
	}
	p := start(t, "", args("--steps", "1000000", "--checkpoint-every", "20")...)
	require.Regexp(t, `<strong>Running: step \d+ of 1000000</strong>, written at \d{4}-`, seen(p))
	unfinished := regexp.MustCompile(`Unfinished, whether they go on or were killed: run at step [1-9]\d* of\s+1000000, as\s+of`)
	require.Regexp(t, unfinished, succeed(t, "report", out))
	require.Eventually(t, func() bool {
		found, err := filepath.Glob(filepath.Join(out, "checkpoint-*[0-9]"))
		return err == nil && len(found) > 0
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, p.Process.Kill())
	_ = p.Wait()
	require.Regexp(t, unfinished, succeed(t, "report", out), "what a killed run left is read")
	file := filepath.Join(dir, "report.html")
	succeed(t, "report", out, "-o", file)
	html, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(html), `href="run/live.html"`)
	own := filepath.Join(out, "live.html")
	fail(t, 2, own+" is a file of one of the runs", "report", out, "-o", own)

	p = start(t, "", args("--resume")...)
	old := seen(p)
	require.Eventually(t, func() bool { return seen(p) != old }, time.Minute, 50*time.Millisecond, "the page follows the run that goes on")
	require.NoError(t, p.Process.Signal(os.Interrupt))
	require.Error(t, p.Wait())
	require.Equal(t, 130, p.ProcessState.ExitCode(), p.stderr.String())
	m, err := outdir.Read(out)
	require.NoError(t, err)
	require.Contains(t, m.Files, "live.html")
	html, err = os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), `content="0; url=index.html"`)
	require.NotContains(t, string(html), "Running")
	for _, name := range []string{"live.json", outdir.LiveName} {
		require.NoFileExists(t, filepath.Join(out, name))
	}
	require.NotContains(t, succeed(t, "report", out), "Unfinished")
}
