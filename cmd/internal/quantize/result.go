package quantize

import (
	"sync"

	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/fp8"
)

// result is what is known of a matrix from the strips done so far, in whatever
// order. Its methods may be called by several goroutines at once.
type result struct {
	mu       sync.Mutex
	extremes tensorfile.Extremes
	stats    fp8.Stats
	first    nonFinite // of stats.NonFinite() values, if that is not 0
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

// add notes what happened to values, of which the first is the given element of the
// matrix.
func (r *result) add(st *fp8.Stats, values tensorfile.Array, first int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.stats.NonFinite()
	r.stats.Merge(st)
	if st.NonFinite() == 0 || before > 0 && int64(r.first.index) < first {
		return
	}
	i, value := values.FirstNonFinite()
	r.first = nonFinite{int(first) + i, value}
}
