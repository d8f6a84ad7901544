package attention_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
)

// TestConcurrentAppend: of eight goroutines that append to one sequence those that are refused
// have appended nothing, and the others all of theirs.
func TestConcurrentAppend(t *testing.T) {
	const dim, times = 64, 200
	one := attention.CacheScale{Scales: []float32{1}}
	c := newCache(t, attention.CacheConfig{Pages: 8 * times, KVHeads: 1, Dim: dim, K: one, V: one})
	s := c.NewSequence("")
	var appended atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			x := make([]float32, 3*dim)
			for range times {
				if err := attention.Append(s, x, x); err == nil {
					appended.Add(3)
				} else {
					require.ErrorIs(t, err, attention.ErrConcurrent)
					require.ErrorContains(t, err, "attention: a Sequence is in use: concurrent use")
				}
			}
		})
	}
	all.Wait()
	require.EqualValues(t, appended.Load(), s.Len())
}
