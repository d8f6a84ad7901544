//go:build unix

package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestMain makes this test binary the command where a test starts it as one.
func TestMain(m *testing.M) {
	if os.Getenv("OCTAVO_TEST_AS_COMMAND") != "" {
		main()
	}
	heedSignals()
	// Each command line builds all commands and works for a millisecond: half of the time would
	// go to collecting garbage. Commands in processes of their own have Go's default.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// heedSignals has the processes that tests start obey signals that this one was told to
// ignore, by nohup, say, or by a shell that started it in the background: who catches a
// signal does not bequeath that it was ignored.
func heedSignals() {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// process is the command in a process of its own.
type process struct {
	*exec.Cmd
	stdout bytes.Buffer
	stderr lockedBuffer
}

// lockedBuffer can be read while a process writes to it.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// start starts the command by way of a shell that does first what setup says.
func start(t *testing.T, setup string, args ...string) *process {
	t.Helper()
	p := prepare(t, setup, append([]string{"--progress=none"}, args...)...) // there is no telling how long a test takes
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// prepare is start without the start.
func prepare(t *testing.T, setup string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	probe := exec.Command(self, "version")
	probe.Env = append(os.Environ(), "OCTAVO_TEST_AS_COMMAND=1")
	testutil.NoProcess(t, probe.Run())
	p := &process{Cmd: exec.Command("/bin/sh", append([]string{"-c", setup + `exec "$0" "$@"`, self}, args...)...)}
	p.Env = append(os.Environ(), "OCTAVO_TEST_AS_COMMAND=1")
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	return p
}

// wait returns the exit status, or minus the signal that ended the process: SIGKILL if
// it does not end for minutes.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	limit := time.AfterFunc(15*time.Minute, func() { _ = p.Process.Kill() })
	defer limit.Stop()
	err := p.Wait()
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), "%v", err)
	if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
		return -int(status.Signal())
	}
	return exit.ExitCode()
}

// eventually waits for something that is bound to happen.
func eventually(t *testing.T, happened func() bool) {
	t.Helper()
	require.Eventually(t, happened, 2*time.Minute, 2*time.Millisecond)
}

// matches returns the files that match a pattern.
func matches(t *testing.T, pattern ...string) []string {
	names, err := filepath.Glob(filepath.Join(pattern...))
	require.NoError(t, err)
	return names
}

// sparse writes a file with tensors of zeros that takes no room on disk.
func sparse(t *testing.T, infos ...safetensors.Info) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "sparse.safetensors")
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	_, err = safetensors.NewWriter(file, infos, nil)
	require.NoError(t, err)
	stat, err := file.Stat()
	require.NoError(t, err)
	size := stat.Size()
	for _, info := range infos {
		size += info.Bytes()
	}
	require.NoError(t, file.Truncate(size))
	return path
}

// TestSignalsStopQuantize checks that nothing is left of the file that was being
// written, whichever signal it was.
func TestSignalsStopQuantize(t *testing.T) {
	in := sparse(t, safetensors.Info{Name: "w", DType: safetensors.F32, Shape: []int{1 << 17, 1 << 11}}) // 1 GiB
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		out := filetest.Output(t)
		p := start(t, "", "quantize", in, "-o", out, "--profile", "deepseek")
		eventually(t, func() bool { return len(matches(t, filepath.Dir(out), ".octavo-*")) == 1 })
		require.NoError(t, p.Process.Signal(s))
		require.Equal(t, 128+int(s), p.wait(t), "%v: %s", s, &p.stderr)
		require.Equal(t, "octavo: "+interruption{s}.Error()+": no file was written\n", p.stderr.String())
		filetest.RequireNothing(t, out)
	}
}

// TestSignalsStopTrain checks that a run that is stopped writes its pages and a
// checkpoint that another goes on from.
func TestSignalsStopTrain(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("to be or not to be, ", 300)), 0o666))
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		dir := t.TempDir()
		args := []string{"train", "--text", text, "-o", dir, "--dim", "16", "--heads", "2", "--layers", "1", "--hidden", "16",
			"--context", "16", "--batch", "2", "--steps", "1000000", "--checkpoint-every", "10"}
		p := start(t, "", args...)
		eventually(t, func() bool { return len(matches(t, dir, "checkpoint-???????")) > 0 })
		require.NoError(t, p.Process.Signal(s))
		require.Equal(t, 128+int(s), p.wait(t), "%v: %s", s, &p.stderr)
		require.Regexp(t, `^octavo: stopped by .*: [0-9]+ of 1000000 steps were done and written to \S+\n$`, p.stderr.String())
		require.Len(t, matches(t, dir, "index.html"), 1)
		require.Len(t, matches(t, dir, "checkpoint-*"), 1)
		require.Empty(t, matches(t, dir, ".octavo-*"))

		p = start(t, "", append(args, "--resume")...)
		time.Sleep(50 * time.Millisecond)
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		if status := p.wait(t); status != -int(syscall.SIGTERM) { // it was not too early to say so
			require.Equal(t, 128+int(syscall.SIGTERM), status, "%s", &p.stderr)
		}
	}
}

// TestIgnoredSignals starts a run as nohup does.
func TestIgnoredSignals(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("to be or not to be, ", 300)), 0o666))
	dir := t.TempDir()
	p := start(t, "trap '' HUP; ", "train", "--text", text, "-o", dir, "--dim", "16", "--heads", "2", "--layers", "1", "--hidden", "16",
		"--context", "16", "--batch", "2", "--steps", "1000000", "--checkpoint-every", "10")
	eventually(t, func() bool { return len(matches(t, dir, "checkpoint-???????")) > 0 })
	require.NoError(t, p.Process.Signal(syscall.SIGHUP))
	newest := func() string { return slices.Max(matches(t, dir, "checkpoint-???????")) }
	for range 3 { // it goes on
		before := newest()
		eventually(t, func() bool { return newest() > before })
	}
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 128+int(syscall.SIGTERM), p.wait(t), "%s", &p.stderr)
}

// TestKilledTrain: a run that is killed leaves the files of the one that it was to
// replace as they were, and the next one is not kept from that directory.
func TestKilledTrain(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("to be or not to be, ", 300)), 0o666))
	dir := t.TempDir()
	args := []string{"train", "--text", text, "-o", dir, "--dim", "16", "--heads", "2", "--layers", "1", "--hidden", "16",
		"--context", "16", "--batch", "2", "--quiet"}
	p := start(t, "", append(args, "--steps", "2")...)
	require.Zero(t, p.wait(t), "%s", &p.stderr)
	read := func() map[string]string {
		files := map[string]string{}
		for _, name := range entriesOf(t, dir) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			files[name] = string(data)
		}
		return files
	}
	before := read()

	p = start(t, "", append(args, "--steps", "1000000", "--overwrite")...)
	eventually(t, func() bool { return len(matches(t, dir, ".octavo-lock")) == 1 })
	other := start(t, "", append(args, "--steps", "1", "--overwrite")...)
	require.Equal(t, exitData, other.wait(t))
	require.Equal(t, "octavo: "+dir+": another octavo is writing into it: name another directory with -o\n", other.stderr.String())
	time.Sleep(100 * time.Millisecond) // some steps
	require.NoError(t, p.Process.Kill())
	require.Equal(t, -int(syscall.SIGKILL), p.wait(t))
	after := read()
	delete(after, ".octavo-lock")
	if live, err := outdir.ReadLive(dir); err == nil { // it went on for long enough to be shown
		for _, name := range append(live.Files, outdir.LiveName) {
			delete(before, name)
			delete(after, name)
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	for name := range before {
		require.True(t, before[name] == after[name], "%s has changed", name)
	}

	p = start(t, "", append(args, "--steps", "3", "--overwrite")...)
	require.Zero(t, p.wait(t), "%s", &p.stderr)
	require.Empty(t, matches(t, dir, ".octavo-*"))
	require.True(t, before["curves.csv"] != read()["curves.csv"])
}
