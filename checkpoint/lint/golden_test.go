package lint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint/lint"
	"github.com/octavo-fp8/octavo/internal/testutil"
)

// TestGolden checks that sound models, and parts of them, give no alarm.
func TestGolden(t *testing.T) {
	root := testutil.Shared(t, "golden", "checkpoints")
	dirs, err := os.ReadDir(root)
	require.NoError(t, err)
	n := 0
	for _, d := range dirs {
		if !d.IsDir() {
			continue
		}
		n++
		for _, o := range []lint.Options{{}, {Headers: true}, {Workers: 1}} {
			r, err := lint.Check(t.Context(), filepath.Join(root, d.Name()), o)
			require.NoError(t, err)
			require.Empty(t, r.Findings, "%s", d.Name())
			require.NotEmpty(t, r.Layout)
			require.Positive(t, r.Bytes)
		}
	}
	require.GreaterOrEqual(t, n, 17)
}
