//go:build unix

package inputfile

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// soon fails unless do returns: opening a pipe waits for the other side.
func soon(t *testing.T, do func()) {
	t.Helper()
	done := make(chan bool)
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
}

// TestSpecialFiles checks that what is no file is refused without waiting.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o666))
	kinds := map[string]string{pipe: "a pipe", os.DevNull: "a device", dir: "a directory"}
	socket := filepath.Join(dir, "socket")
	if listener, err := net.Listen("unix", socket); err == nil {
		defer listener.Close()
		kinds[socket] = "a socket"
	}
	for path, kind := range kinds {
		soon(t, func() {
			_, _, err := Open(path)
			require.EqualError(t, err, "open "+path+": it is "+kind+", not a regular file")
			_, err = ReadAll(path, 10)
			if path == pipe {
				require.EqualError(t, err, path+": it is a pipe that nobody writes to")
				return
			}
			require.EqualError(t, err, "open "+path+": it is "+kind+", not a regular file")
		})
	}
}

// TestPipeWithWriter reads what somebody writes, by and by.
func TestPipeWithWriter(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o666))
	for most, want := range map[int64]string{8: "", 7: pipe + ": it has more than 7 bytes"} {
		writer, err := os.OpenFile(pipe, os.O_RDWR, 0)
		require.NoError(t, err)
		go func() {
			for range 2 {
				time.Sleep(10 * time.Millisecond)
				_, _ = writer.WriteString("text")
			}
			time.Sleep(10 * time.Millisecond)
			writer.Close()
		}()
		text, err := ReadAll(pipe, most)
		if want != "" {
			require.EqualError(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "texttext", string(text))
	}
}
