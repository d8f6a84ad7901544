//go:build unix

package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPipes checks that a pipe is written to, by Write only, and stays one.
func TestPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o666))
	_, err := Create(path)
	require.EqualError(t, err, "replace "+path+": it is not a regular file")

	read := make(chan string)
	go func() {
		file, err := os.Open(path)
		if err != nil {
			read <- err.Error()
			return
		}
		defer file.Close()
		text, _ := io.ReadAll(file)
		read <- string(text)
	}()
	require.NoError(t, Write(path, writing("text")))
	require.Equal(t, "text", <-read)
	stat, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, stat.Mode().Type())
	require.NoError(t, Write(os.DevNull, writing("text")))
}

// TestOwner gives a file away and replaces it.
func TestOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, nil, 0o640))
	err := os.Chown(path, 12345, 23456)
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("for root only: %v", err)
	}
	require.NoError(t, err)
	require.NoError(t, Write(path, writing("new")))
	stat, err := os.Stat(path)
	require.NoError(t, err)
	owner := stat.Sys().(*syscall.Stat_t)
	require.Equal(t, []uint32{12345, 23456}, []uint32{owner.Uid, owner.Gid})
	require.Equal(t, os.FileMode(0o640), stat.Mode())
}

// TestLeftBehind: what a process that was killed left goes with the next File for the same
// path, and neither what is being written nor what is of another path.
func TestLeftBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	begin := func(path string) *File {
		f, err := Create(path)
		require.NoError(t, err)
		return f
	}
	living, dead, other := begin(path), begin(path), begin(filepath.Join(dir, "g"))
	require.NoError(t, dead.file.Close()) // which is what the system does for a process that ends
	require.NoError(t, other.file.Close())
	requireEntries(t, dir, 3)
	require.NoError(t, os.Symlink("f", filepath.Join(dir, "link")))
	next := begin(filepath.Join(dir, "link"))
	requireEntries(t, dir, 4)
	require.NoFileExists(t, dead.file.Name())
	require.FileExists(t, living.file.Name())
	require.FileExists(t, other.file.Name())
	require.NoError(t, living.Commit())
	require.NoError(t, next.Commit())
	requireEntries(t, dir, 3)
}

// TestManyAtOnce: of many that write one path at once, each is done, and nothing is left.
func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	failed := make(chan error)
	for range 8 {
		go func() {
			var err error
			for i := 0; i < 50 && err == nil; i++ {
				err = Write(path, writing("text"))
			}
			failed <- err
		}()
	}
	for range 8 {
		require.NoError(t, <-failed)
	}
	requireContent(t, path, "text")
	requireEntries(t, dir, 1)
}
