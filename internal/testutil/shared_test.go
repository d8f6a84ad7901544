package testutil

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder is a testing.TB that notes how a helper ended.
type recorder struct {
	testing.TB
	outcome string
}

func (r *recorder) Helper()        {}
func (r *recorder) Name() string   { return "TestX" }
func (r *recorder) Fatal(...any)   { r.end("fatal") }
func (r *recorder) end(how string) { r.outcome = how; runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) {
	r.end("fatal: " + fmt.Sprintf(format, args...))
}
func (r *recorder) Skipf(format string, args ...any) {
	r.end("skip: " + fmt.Sprintf(format, args...))
}

// ending says how f ended the test that it was called in, which is nothing if it let
// the test go on.
func ending(f func(t testing.TB)) string {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.outcome
}

func outcome(elem ...string) (how, path string) {
	how = ending(func(t testing.TB) { path = Shared(t, elem...) })
	return how, path
}

// workspace makes a repository with a nested module and enters the latter.
func workspace(t *testing.T) (parent string) {
	parent, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	nested := filepath.Join(parent, "octavo", "cmd", "octavo")
	require.NoError(t, os.MkdirAll(nested, 0o755))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(parent, "octavo", name), []byte(text), 0o644))
	}
	write("go.mod", "module github.com/octavo-fp8/octavo\n\ngo 1.26\n")
	write(filepath.Join("cmd", "go.mod"), "module github.com/octavo-fp8/octavo/cmd\n")
	t.Chdir(nested)
	return parent
}

func TestSharedAbsent(t *testing.T) {
	workspace(t)
	t.Setenv("CI", "")
	how, _ := outcome("golden", "encode.json")
	require.Equal(t, "skip: ../shared is absent: TestX not tested against "+filepath.Join("golden", "encode.json"), how)
	t.Setenv("CI", "true")
	how, _ = outcome("golden", "encode.json")
	require.Equal(t, "fatal: ../shared is absent: TestX not tested against "+filepath.Join("golden", "encode.json")+", and CI=true requires it", how)
}

func TestSharedPresent(t *testing.T) {
	parent := workspace(t)
	require.NoError(t, os.MkdirAll(filepath.Join(parent, "shared", "golden"), 0o755))
	want := filepath.Join(parent, "shared", "golden")
	how, path := outcome("golden")
	require.Empty(t, how)
	require.Equal(t, want, path)
	how, _ = outcome("golden", "missing")
	require.Contains(t, how, "fatal: ../shared lacks a file")
}

func TestFull(t *testing.T) {
	t.Setenv("OCTAVO_EXHAUSTIVE", "")
	require.False(t, Full())
	t.Setenv("OCTAVO_EXHAUSTIVE", "1")
	require.True(t, Full())
}
