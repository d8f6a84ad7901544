package main

import (
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

// outcome is what is known of a matrix from the strips done so far, in whatever
// order. Its methods may be called by several goroutines at once.
type outcome struct {
	mu       sync.Mutex
	extremes extremes
	stats    fp8.Stats
	first    telemetry.NonFinite // of stats.NonFinite() values, if that is not 0
}

func (r *outcome) survey(e extremes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.extremes.merge(e)
}

// add notes what happened to values, of which the first is the given element of the
// matrix.
func (r *outcome) add(st *fp8.Stats, values array, first int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.stats.NonFinite()
	r.stats.Merge(st)
	if st.NonFinite() == 0 || before > 0 && int64(r.first.Index) < first {
		return nil
	}
	_, found, err := values.measure()
	found.Index += int(first)
	r.first = found
	return err
}
