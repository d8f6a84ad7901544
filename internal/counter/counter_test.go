package counter

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/progress"
)

func TestCounter(t *testing.T) {
	for _, total := range []int64{0, 1, 7, 100, 12345} {
		var reports []int64
		c := New(progress.Func(func(op string, done, all int64) {
			require.Equal(t, "op", op)
			require.Equal(t, total, all)
			reports = append(reports, done)
		}), "op", total)
		var wait sync.WaitGroup
		for range total {
			wait.Go(func() { c.Add(1) })
		}
		wait.Wait()
		require.IsNonDecreasing(t, append([]int64{0, 0}, reports...))
		require.LessOrEqual(t, len(reports), 101)
		if total > 0 {
			require.Equal(t, total, reports[len(reports)-1])
		}
	}
	New(nil, "op", 1).Add(1)
}
