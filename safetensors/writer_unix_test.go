//go:build unix

package safetensors

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteFileRefusesPipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o666))
	require.EqualError(t, WriteFile(path, nil, nil), "safetensors: replace "+path+": it is not a regular file")
	stat, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, stat.Mode().Type())
}
