package testutil

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Lacking ends a test for which this machine lacks something: the test is skipped, or
// fails if the environment variable CI is "true".
func Lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format+", and CI=true requires it", args...)
	}
	t.Skipf(format, args...)
}

// NoProcess ends a test that wanted to start this program again as another process,
// where err, which may be nil, says that it was not started: the test is skipped where
// that cannot be, under an emulator of another processor and on systems without
// processes, and fails elsewhere. An error of a process that was started and has ended,
// an *exec.ExitError, is left for the test to judge.
func NoProcess(t testing.TB, err error) {
	t.Helper()
	var ended *exec.ExitError
	switch {
	case err == nil || errors.As(err, &ended):
	case errors.Is(err, errors.ErrUnsupported) || strings.Contains(err.Error(), "exec format error"):
		t.Skipf("no other process can be started here: %v", err)
	default:
		t.Fatalf("no other process was started: %v", err)
	}
}
