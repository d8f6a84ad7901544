package guard

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGuard: of many goroutines one at a time is in, and what it changes needs no other lock.
func TestGuard(t *testing.T) {
	var g Guard
	var all sync.WaitGroup
	var refused [8]int
	in, entered := 0, 0
	for i := range refused {
		all.Go(func() {
			for range 1000 {
				if err := g.Enter("test: it"); err != nil {
					require.ErrorIs(t, err, ErrConcurrent)
					refused[i]++
					continue
				}
				in++
				entered++
				if in != 1 {
					panic("two are in")
				}
				in--
				g.Leave()
			}
		})
	}
	all.Wait()
	for _, n := range refused {
		entered += n
	}
	require.Equal(t, 8*1000, entered)
	require.NoError(t, g.Enter("test: it"))
	require.EqualError(t, g.Enter("test: it"), "test: it is in use: concurrent use: call it from one goroutine at a time")
}
