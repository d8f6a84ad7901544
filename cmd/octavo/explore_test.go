package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExplore writes the page, also over one that is there, and names what cannot be written.
func TestExplore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a page.html")
	for range 2 {
		require.Equal(t, file+": open it in a browser\n", succeed(t, "explore", "-o", file))
		page, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(page), "<h1 id=\"finding\">Under one E4M3 scale")
		require.Contains(t, string(page), "octavo explore -o ")
	}
	r := octavo(nil, "explore", "-o", filepath.Join(file, "below"))
	require.NotZero(t, r.status)
	require.Contains(t, r.stderr, "name another file with -o")
	require.NotZero(t, octavo(nil, "explore", "-o", file, "more").status)
}
