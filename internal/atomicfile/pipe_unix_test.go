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
