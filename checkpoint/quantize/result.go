package quantize

import (
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/loss"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
)

// result is what is known of a matrix from the strips done so far.
type result struct {
	mu       sync.Mutex
	extremes tensorfile.Extremes

	done  loss.InOrder[stripResult]
	stats fp8.Stats
	sums  loss.Sums
	first nonFinite // of stats.NonFinite() values, if that is not 0
}

// stripResult is what became of a strip.
type stripResult struct {
	stats fp8.Stats
	sums  loss.Sums
	first nonFinite // of stats.NonFinite() values, if that is not 0
}

// nonFinite is a value that is NaN or infinite, and where it is.
type nonFinite struct {
	index int
	value float64
}

func (r *result) survey(e tensorfile.Extremes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.extremes.Merge(e)
}

// add merges the strip after those that were merged.
func (r *result) add(s stripResult) {
	if r.stats.NonFinite() == 0 {
		r.first = s.first
	}
	r.stats.Merge(&s.stats)
	r.sums.Add(s.sums)
}
