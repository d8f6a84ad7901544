package lab

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/progress"
)

// TestSteps: a reporter hears of few and of many steps, a few times in every percent at
// most, and of the last.
func TestSteps(t *testing.T) {
	for _, total := range []int{1, 3, 400, 401, 100000} {
		var heard []int64
		s := Steps{reporter: progress.Func(func(op string, done, all int64) {
			require.Equal(t, "x", op)
			require.EqualValues(t, total, all)
			heard = append(heard, done)
		})}
		s.Expect(total)
		for range total {
			require.NoError(t, s.Done(t.Context(), "x"))
		}
		require.Len(t, heard, min(total, perTotal))
		require.EqualValues(t, total, heard[len(heard)-1])
		require.IsIncreasing(t, append([]int64{0}, heard...))
	}
}

// TestStepsEnd: a step that is done says why it is the last.
func TestStepsEnd(t *testing.T) {
	var s Steps
	s.Expect(2)
	ctx, cancel := context.WithCancelCause(t.Context())
	require.NoError(t, s.Done(ctx, "x"))
	why := errors.New("why")
	cancel(why)
	require.Equal(t, why, s.Done(ctx, "x"))
}
