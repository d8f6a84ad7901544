package testutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLacking(t *testing.T) {
	lacking := func(t testing.TB) { Lacking(t, "no %s of %d%%", "disk", 100) }
	for _, ci := range []string{"", "false", "1"} {
		t.Setenv("CI", ci)
		require.Equal(t, "skip: no disk of 100%", ending(lacking), "CI=%s", ci)
	}
	t.Setenv("CI", "true")
	require.Equal(t, "fatal: no disk of 100%, and CI=true requires it", ending(lacking))
}

func TestNoProcess(t *testing.T) {
	starting := func(err error) error { return &fs.PathError{Op: "fork/exec", Path: "p", Err: err} }
	for _, ci := range []string{"", "true"} {
		t.Setenv("CI", ci)
		for _, c := range []struct {
			err  error
			want string
		}{
			{nil, ""},
			{&exec.ExitError{}, ""},
			{fmt.Errorf("child: %w", &exec.ExitError{}), ""},
			{starting(syscall.ENOEXEC), "skip: no other process can be started here: fork/exec p: exec format error"},
			{starting(errors.ErrUnsupported), "skip: no other process can be started here: fork/exec p: unsupported operation"},
			{starting(syscall.ENOSYS), "skip: no other process can be started here: fork/exec p: " + syscall.ENOSYS.Error()},
			{starting(fs.ErrPermission), "fatal: no other process was started: fork/exec p: permission denied"},
		} {
			require.Equal(t, c.want, ending(func(t testing.TB) { NoProcess(t, c.err) }), "CI=%s, %v", ci, c.err)
		}
	}
}

// TestNoProcessAbsent starts what is not there, which is not for want of processes.
func TestNoProcessAbsent(t *testing.T) {
	err := exec.Command(filepath.Join(t.TempDir(), "absent")).Run()
	require.Contains(t, ending(func(t testing.TB) { NoProcess(t, err) }), "fatal: no other process was started: ")
}
