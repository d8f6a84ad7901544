package quantize

import (
	"context"
	"sync"

	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

// result is what is known of a matrix from the strips done so far, in whatever
// order. Its methods may be called by several goroutines at once.
type result struct {
	mu       sync.Mutex
	extremes tensorfile.Extremes
	stats    fp8.Stats
	first    telemetry.NonFinite // of stats.NonFinite() values, if that is not 0
}

func (r *result) survey(e tensorfile.Extremes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.extremes.Merge(e)
}

// add notes what happened to values, of which the first is the given element of the
// matrix.
func (r *result) add(ctx context.Context, st *fp8.Stats, values tensorfile.Array, first int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.stats.NonFinite()
	r.stats.Merge(st)
	if st.NonFinite() == 0 || before > 0 && int64(r.first.Index) < first {
		return nil
	}
	_, found, err := values.Measure(ctx)
	found.Index += int(first)
	r.first = found
	return err
}
