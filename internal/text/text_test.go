package text

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

func TestGoSource(t *testing.T) {
	text, err := GoSource()
	require.NoError(t, err)
	require.Greater(t, text.Bytes, 1<<20)
	require.Contains(t, text.Source, "standard library of go1")
	require.Contains(t, string(text.Data), "package fmt")

	t.Chdir(t.TempDir())
	t.Setenv("GOTOOLCHAIN", "auto")
	t.Setenv("GOPROXY", "off")
	require.NoError(t, os.WriteFile("go.mod", []byte("module m\ngo 1.999\n"), 0o644))
	again, err := GoSource()
	require.NoError(t, err)
	require.Equal(t, text.SHA256, again.SHA256)
}

func TestReadSourceLeavesOutTests(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"b/b.go": "B", "a/a.go": "A", "a/a_test.go": "x", "a/testdata/t.go": "x", "cmd/c.go": "x", "a/a.s": "x", "vendor/v.go": "x",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	data, err := readSource(root)
	require.NoError(t, err)
	require.Equal(t, "AB", string(data))

	link := filepath.Join(t.TempDir(), "src")
	if err := os.Symlink(root, link); err != nil {
		testutil.Lacking(t, "%v", err)
	}
	data, err = readSource(link)
	require.NoError(t, err)
	require.Equal(t, "AB", string(data))
}

func TestReadSourceThatIsAbsent(t *testing.T) {
	_, err := readSource(filepath.Join(t.TempDir(), "src"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestRead(t *testing.T) {
	_, err := Read(filepath.Join(t.TempDir(), "no-such"))
	require.ErrorContains(t, err, "--text wants a file")
	text, err := Read(testutil.Shared(t, "data", "tinyshakespeare.txt"))
	require.NoError(t, err)
	require.Equal(t, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed", text.SHA256)
}
