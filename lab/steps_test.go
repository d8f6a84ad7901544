package lab

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/progress"
)

// TestSteps: a reporter hears of the beginning, of few and of many steps, a few times in
// every percent at most, and of the last.
func TestSteps(t *testing.T) {
	for _, total := range []int64{1, 3, 400, 401, 100000} {
		var heard []int64
		s := Steps{reporter: progress.Func(func(_ string, done, all int64) {
			require.Equal(t, total, all)
			heard = append(heard, done)
		})}
		s.Expect(total)
		for range total {
			require.NoError(t, s.Done(t.Context(), "x", 1))
		}
		require.Len(t, heard, 1+min(int(total), perTotal))
		require.Zero(t, heard[0])
		require.Equal(t, total, heard[len(heard)-1])
		require.IsIncreasing(t, heard)
	}
}

// TestStepsOfUnequalWork: one that is most of the work is most of the way.
func TestStepsOfUnequalWork(t *testing.T) {
	var heard []string
	s := Steps{reporter: progress.Func(func(op string, done, all int64) {
		heard = append(heard, fmt.Sprintf("%s %d/%d", op, done, all))
	})}
	s.Expect(4000)
	for _, work := range []int64{1, 3000, 998, 1} {
		require.NoError(t, s.Done(t.Context(), "x", work))
	}
	require.Equal(t, []string{"beginning 0/4000", "x 3001/4000", "x 3999/4000", "x 4000/4000"}, heard, "of the first alone nobody need hear")
}

// TestStepsEnd: a step that is done says why it is the last.
func TestStepsEnd(t *testing.T) {
	var s Steps
	s.Expect(2)
	ctx, cancel := context.WithCancelCause(t.Context())
	require.NoError(t, s.Done(ctx, "x", 1))
	why := errors.New("why")
	cancel(why)
	require.Equal(t, why, s.Done(ctx, "x", 1))
}
