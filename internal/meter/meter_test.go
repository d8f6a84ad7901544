package meter

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/progress"
)

// TestReports checks that done never falls, reaches the total and is not told too
// often, whoever counts.
func TestReports(t *testing.T) {
	for _, total := range []int64{1, 7, 199, 200, 12345} {
		var heard []int64
		var m Meter
		m.Start(t.Context(), progress.Func(func(op string, done, of int64) {
			require.Equal(t, "test", op)
			require.Equal(t, total, of)
			heard = append(heard, done)
		}), "test", total)
		var wait sync.WaitGroup
		for worker := range int64(3) {
			wait.Go(func() {
				for i := worker; i < total; i += 3 {
					if err := m.Add(1); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wait.Wait()
		require.Equal(t, total, heard[len(heard)-1])
		require.LessOrEqual(t, len(heard), 401)
		for i := 1; i < len(heard); i++ {
			require.Less(t, heard[i-1], heard[i])
		}
	}
}

func TestErr(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var m Meter
	m.Start(ctx, nil, "test", 10)
	require.NoError(t, m.Add(1))
	cancel()
	require.Equal(t, context.Canceled, m.Add(1))

	reason := errors.New("enough")
	ctx, because := context.WithCancelCause(t.Context())
	because(reason)
	require.ErrorIs(t, Err(ctx), context.Canceled)
	require.ErrorIs(t, Err(ctx), reason)
}

// TestNoContext: the caller hears what is missing, before workers have begun.
func TestNoContext(t *testing.T) {
	var none context.Context
	var m Meter
	require.PanicsWithValue(t, "octavo: nil context", func() { _ = Err(none) })
	require.PanicsWithValue(t, "octavo: nil context", func() { m.Start(none, nil, "test", 1) })
	require.PanicsWithValue(t, "octavo: nil context", func() { New(none, nil, "test", 1) })
}
