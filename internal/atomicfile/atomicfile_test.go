package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

func writing(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func requireContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

func requireEntries(t *testing.T, dir string, n int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, n)
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, Write(path, writing("one")))
	requireContent(t, path, "one")
	require.NoError(t, Write(path, writing("two")))
	requireContent(t, path, "two")
	requireEntries(t, dir, 1)
}

// TestWriteFails checks that the old file stays, to the last moment, and that nothing
// is left beside it.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o666))
	failed := errors.New("failed")
	err := Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "new")
		require.NoError(t, err)
		requireContent(t, path, "old")
		return failed
	})
	require.Equal(t, failed, err)
	require.Panics(t, func() { _ = Write(path, func(io.Writer) error { panic(failed) }) })
	requireContent(t, path, "old")
	requireEntries(t, dir, 1)

	require.EqualError(t, Write(dir, writing("")), "replace "+dir+": it is not a regular file")
	absent := filepath.Join(dir, "absent", "f")
	err = Write(absent, writing(""))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "open "+absent+": ")
}

// TestPermissions replaces files that others may not read, or may run.
func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are of another kind")
	}
	dir := t.TempDir()
	for _, mode := range []os.FileMode{0o600, 0o640, 0o666, 0o755, 0o444} {
		path := filepath.Join(dir, mode.String())
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.NoError(t, os.Chmod(path, mode)) // whatever the umask
		require.NoError(t, Write(path, writing("new")))
		requireContent(t, path, "new")
		stat, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, stat.Mode())
	}
	fresh, plain := filepath.Join(dir, "fresh"), filepath.Join(dir, "plain")
	require.NoError(t, Write(fresh, writing("")))
	require.NoError(t, os.WriteFile(plain, nil, 0o666))
	a, err := os.Stat(fresh)
	require.NoError(t, err)
	b, err := os.Stat(plain)
	require.NoError(t, err)
	require.Equal(t, b.Mode(), a.Mode(), "as creating a file gives")
}

// TestLinks writes through links: absolute, relative, one after another, from a
// directory that is itself a link, to a file that is there and to one that is not.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	here, there := filepath.Join(dir, "a", "here"), filepath.Join(dir, "there")
	require.NoError(t, os.MkdirAll(here, 0o777))
	require.NoError(t, os.Mkdir(there, 0o777))
	if err := os.Symlink(filepath.Join(there, "f"), filepath.Join(here, "absolute")); err != nil {
		testutil.Lacking(t, "%v", err)
	}
	require.NoError(t, os.Symlink("absolute", filepath.Join(here, "chain")))
	require.NoError(t, os.Symlink("../../there/f", filepath.Join(here, "relative")))
	require.NoError(t, os.Symlink("a/here", filepath.Join(dir, "short")))
	for _, text := range []string{"new", "replaced"} {
		for _, link := range []string{filepath.Join(here, "chain"), filepath.Join(here, "relative"), filepath.Join(dir, "short", "relative")} {
			if text == "new" {
				require.NoError(t, os.RemoveAll(filepath.Join(there, "f")))
			}
			require.NoError(t, Write(link, writing(text)))
			requireContent(t, filepath.Join(there, "f"), text)
			stat, err := os.Lstat(link)
			require.NoError(t, err)
			require.Equal(t, os.ModeSymlink, stat.Mode().Type())
		}
	}
	requireEntries(t, here, 3)
	requireEntries(t, there, 1)

	loop := filepath.Join(here, "loop")
	require.NoError(t, os.Symlink("loop", loop))
	require.EqualError(t, Write(loop, writing("")), "replace "+loop+": it leads through more than 40 links")
}

// TestErrorsNameThePath checks that nobody hears of the other name.
func TestErrorsNameThePath(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	f, err := Create(path)
	require.NoError(t, err)
	require.NoError(t, f.file.Close())
	_, err = f.Write([]byte{1})
	require.EqualError(t, err, "write "+path+": file already closed")
	_, err = f.WriteAt([]byte{1}, 1)
	require.EqualError(t, err, "write "+path+": file already closed")
	require.EqualError(t, f.Commit(), "sync "+path+": file already closed")
	f.Close()

	f, err = Create(path)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(path, 0o777))
	err = f.Commit()
	require.ErrorContains(t, err, "rename "+path+": ")
	require.NotContains(t, err.Error(), ".octavo-")
	f.Close()
	requireEntries(t, dir, 1)
}

func TestAnotherGroup(t *testing.T) {
	for mode, want := range map[os.FileMode]os.FileMode{0o640: 0o600, 0o644: 0o644, 0o664: 0o644, 0o775: 0o755, 0o606: 0o606, 0o600: 0o600} {
		require.Equal(t, want, forAnotherGroup(mode), "%o", mode)
	}
}

func TestNoName(t *testing.T) {
	_, err := Create("")
	require.ErrorContains(t, err, "the name is empty")
}
