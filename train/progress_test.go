package train

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/progress"
)

// TestProgress: what package train does with a whole model is heard of, in order and to
// the end.
func TestProgress(t *testing.T) {
	m, o := newMixer(t, 16, 1), new(optim.AdamW)
	done, total := map[string][]int64{}, map[string]int64{}
	m.Shared().Progress = progress.Func(func(op string, n, of int64) {
		done[op], total[op] = append(done[op], n), of
	})
	m.steps(t, o, 2, 0, 1)
	_, err := Evaluate(t.Context(), m, 3, func(context.Context, int) (float32, error) { return 1, nil })
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "run")
	require.NoError(t, SaveCheckpoint(t.Context(), path, m, o, Position{}))
	_, err = LoadCheckpoint(t.Context(), path, m, o)
	require.NoError(t, err)

	require.Equal(t, []int64{1, 2, 3}, done["evaluate"])
	require.Equal(t, 2*total["load"], total["save"])
	require.Len(t, done, 4)
	for op, counts := range done {
		require.IsIncreasing(t, append([]int64{0}, counts...), op)
		require.Equal(t, total[op], counts[len(counts)-1], op)
	}
}
