package inputfile

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o666))
	file, size, err := Open(path)
	require.NoError(t, err)
	defer file.Close()
	require.Equal(t, int64(4), size)
	text, err := io.ReadAll(file)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))

	_, _, err = Open(dir)
	require.EqualError(t, err, "open "+dir+": it is a directory, not a regular file")
	_, _, err = Open(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "open "+filepath.Join(dir, "absent")+": ")
}

func TestReadAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o666))
	text, err := ReadAll(path, 4)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
	_, err = ReadAll(path, 3)
	require.EqualError(t, err, path+": it has 4 bytes: want at most 3")
	require.NoError(t, os.Truncate(path, 1<<40))
	_, err = ReadAll(path, 1<<32)
	require.EqualError(t, err, path+": it has 1099511627776 bytes: want at most 4294967296")
}
