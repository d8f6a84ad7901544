package parallel

import (
	"runtime"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

type span struct{ lo, hi int }

// spans returns the ranges that For calls, in ascending order.
func spans(n, grain, workers int) (all []span) { return spansOf(For, n, grain, workers) }

func spansOf(do func(n, grain, workers int, f func(lo, hi int)), n, grain, workers int) (all []span) {
	var lock sync.Mutex
	do(n, grain, workers, func(lo, hi int) {
		lock.Lock()
		defer lock.Unlock()
		all = append(all, span{lo, hi})
	})
	sort.Slice(all, func(i, j int) bool { return all[i].lo < all[j].lo })
	return all
}

func TestFor(t *testing.T) {
	for n := -1; n <= 70; n++ {
		for _, grain := range []int{1, 2, 7, 64, 100} {
			for workers := 0; workers <= 9; workers++ {
				all := spans(n, grain, workers)
				if len(all) > Workers(workers) {
					t.Fatalf("For(%d, %d, %d): %d ranges", n, grain, workers, len(all))
				}
				next := 0
				for i, s := range all {
					if s.lo != next || s.hi <= s.lo || i < len(all)-1 && (s.hi-s.lo)%grain != 0 {
						t.Fatalf("For(%d, %d, %d): range %v after %d", n, grain, workers, s, next)
					}
					next = s.hi
				}
				if next != max(n, 0) {
					t.Fatalf("For(%d, %d, %d): stops at %d", n, grain, workers, next)
				}
			}
		}
	}
}

// TestLoop checks that a Loop has the ranges of For, each time, and allocates nothing.
func TestLoop(t *testing.T) {
	var l Loop
	for n := -1; n <= 70; n++ {
		for _, grain := range []int{1, 7, 64} {
			for workers := range 5 {
				if got, want := spansOf(l.For, n, grain, workers), spans(n, grain, workers); !slices.Equal(got, want) {
					t.Fatalf("Loop.For(%d, %d, %d): %v, want %v", n, grain, workers, got, want)
				}
			}
		}
	}
	f := func(int, int) {}
	require.Zero(t, testing.AllocsPerRun(10, func() { l.For(100, 1, 3, f) }))
}

// TestForShares checks that every worker gets something where there is enough.
func TestForShares(t *testing.T) {
	for workers := 1; workers <= 8; workers++ {
		require.Len(t, spans(64*workers, 64, workers), workers)
		require.Len(t, spans(1000*workers, 1, workers), workers)
	}
	require.Len(t, spans(3, 1, 8), 3)
	require.Equal(t, []span{{0, 10}}, spans(10, 64, 8))
	require.Empty(t, spans(0, 1, 8))
}

// TestForWaits checks that For returns after all calls have, and that they do
// run at the same time.
func TestForWaits(t *testing.T) {
	var running, done atomic.Int32
	For(4, 1, 4, func(lo, hi int) {
		running.Add(1)
		for running.Load() < 4 {
			runtime.Gosched()
		}
		done.Add(1)
	})
	require.Equal(t, int32(4), done.Load())
}

func TestWorkers(t *testing.T) {
	require.Equal(t, 3, Workers(3))
	require.Equal(t, runtime.GOMAXPROCS(0), Workers(0))
	require.Equal(t, runtime.GOMAXPROCS(0), Workers(-2))
}
