package workpool

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPool(t *testing.T) {
	type own struct{ done int }
	c := New(3, func() *own { return new(own) })
	var sum atomic.Int64
	for i := range 100 {
		c.Give(func(w *own) error {
			w.done++
			sum.Add(int64(i))
			return nil
		})
	}
	require.NoError(t, c.Wait())
	require.Equal(t, int64(4950), sum.Load())

	failed := errors.New("failed")
	c.Give(func(*own) error { return failed })
	require.Equal(t, failed, c.Wait())
	c.Give(func(*own) error { sum.Add(1); return errors.New("second") })
	require.Equal(t, failed, c.Finish())
	require.Equal(t, int64(4950), sum.Load(), "no task is begun after an error")
}

// TestPoolFirstError checks that the error is that of the earliest task, though it
// fails last.
func TestPoolFirstError(t *testing.T) {
	c := New(2, func() *int { return new(int) })
	first, later := errors.New("first"), make(chan bool)
	c.Give(func(*int) error { <-later; return first })
	c.Give(func(*int) error { defer close(later); return errors.New("second") })
	require.Equal(t, first, c.Finish())
}

// TestPoolOrder checks that an error keeps later tasks from being begun, not earlier
// ones that a slower goroutine has taken.
func TestPoolOrder(t *testing.T) {
	var c Pool[int]
	c.pending.Add(2)
	first, second := errors.New("first"), errors.New("second")
	c.do(task[int]{func(*int) error { return second }, 1}, nil)
	c.do(task[int]{func(*int) error { return errors.New("third") }, 2}, nil)
	require.Equal(t, second, c.Wait())
	c.pending.Add(1)
	c.do(task[int]{func(*int) error { return first }, 0}, nil)
	require.Equal(t, first, c.Wait())
}

func TestEach(t *testing.T) {
	failed := errors.New("failed")
	for _, workers := range []int{0, 1, 3} {
		var sum, own atomic.Int64
		require.NoError(t, Each(100, workers, func(w *int, i int) error {
			if *w++; *w == 1 {
				own.Add(1)
			}
			sum.Add(int64(i))
			return nil
		}))
		require.Equal(t, int64(4950), sum.Load())
		if workers > 0 {
			require.LessOrEqual(t, own.Load(), int64(workers))
		}
		require.Equal(t, failed, Each(100, workers, func(_ *int, i int) error {
			if i < 50 {
				return nil
			}
			if i > 50 {
				return errors.New("later")
			}
			return failed
		}))
		require.NoError(t, Each(0, workers, func(*int, int) error { return failed }))
	}
}
