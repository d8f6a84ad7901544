package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/demo"
)

// TestDemo writes the files once, refuses to do so again, and leaves foreign files
// alone.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("trains a model; TestReadme uses its files")
	}
	dir := filepath.Join(t.TempDir(), "new", "demo")
	text := succeed(t, "demo", dir, "--progress", "none")
	for _, name := range demo.Names() {
		require.FileExists(t, filepath.Join(dir, name))
		require.Contains(t, text, "\n  "+name)
		require.Contains(t, newDemoCommand().Long, "\n  "+name+" ")
	}
	fail(t, 2, "holds a run already: name another directory with -o, or replace that run with --overwrite", "demo", dir)

	require.True(t, strings.HasSuffix(text, demoLines(dir)))
	require.Contains(t, succeed(t, "lint", dir), dir+": 4 infos in 4 files\n", "of the files that are not the model's")

	mine := filepath.Join(dir, "mine")
	require.NoError(t, os.WriteFile(mine, []byte("mine"), 0o666))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text.txt"), []byte("changed"), 0o666))
	require.Empty(t, succeed(t, "demo", "-o", dir, "--overwrite", "--quiet", "--seed", "2"))
	replaced, err := os.ReadFile(filepath.Join(dir, "text.txt"))
	require.NoError(t, err)
	require.NotEqual(t, "changed", string(replaced))
	require.FileExists(t, mine)
}

// TestDemoForeign does not replace a file of somebody else.
func TestDemoForeign(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "text.txt")
	require.NoError(t, os.WriteFile(path, []byte("mine"), 0o666))
	for _, flag := range []string{"--quiet", "--overwrite"} {
		r := octavo(strings.NewReader(""), "demo", dir, flag)
		require.Equal(t, exitData, r.status)
		require.Contains(t, r.stderr, "text.txt")
		require.Contains(t, r.stderr, "text.txt is there and is of no run: move it away, or name another directory with -o\n")
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "mine", string(data))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)

	fail(t, 2, "want one directory, there are 0", "demo")
	fail(t, 2, "want one directory, there are 2", "demo", dir, "-o", dir)
}
