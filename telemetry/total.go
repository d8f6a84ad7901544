package telemetry

import (
	"cmp"
	"maps"
	"slices"
)

// Totals returns what happened so far, the unfinished step included, sorted by
// tensor and operation. The result is the caller's.
func (r *Recorder) Totals() []Total {
	if r == nil {
		return nil
	}
	return r.Snapshot().Totals
}

// FirstNonFinite returns the first NaN or infinite value, and whether there was
// one: that of the lowest step, and in the same step the one reported first.
// One that comes by [Recorder.Merge] or [Recorder.Event] and is of the same step
// as the present one has no time to compare, so it is first if it is the lesser
// by tensor, operation, index and value.
func (r *Recorder) FirstNonFinite() (NonFinite, bool) {
	if r == nil {
		return NonFinite{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first, r.first.exists()
}

// Event makes a Recorder a [Sink]: it adds e to the totals, and compares
// e.First as [Recorder.Merge] does. Events of other Recorders, or of a file that
// [ReadJSONLines] reads, add up to the same totals. It is not handed on to r's
// sinks, and the error is always nil.
func (r *Recorder) Event(e Event) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.series(e.Op, e.Tensor)
	s.total.Events++
	s.total.Summary.merge(&e.Summary)
	r.first.keepFirst(&e.First)
	return nil
}

// Snapshot is what a Recorder holds at one moment. It shares no memory with it.
type Snapshot struct {
	Step   int64     // the current one
	Totals []Total   // what happened so far, sorted by tensor and operation
	First  NonFinite // the first non-finite value; zero if there was none
}

// Snapshot returns Totals, FirstNonFinite and the number of the current step as they
// are at one moment. The result is the caller's; that of a nil Recorder is empty.
func (r *Recorder) Snapshot() Snapshot {
	if r == nil {
		return Snapshot{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	totals := make([]Total, 0, len(r.all))
	for _, s := range r.sorted() {
		t := s.total
		if s.heard() {
			t.merge(&Total{Events: 1, Summary: s.open.Summary})
		}
		totals = append(totals, t)
	}
	return Snapshot{r.step, totals, r.first}
}

// sorted returns all series by tensor and operation. r.mu must be held.
func (r *Recorder) sorted() []*series {
	return slices.SortedFunc(maps.Values(r.all), func(a, b *series) int {
		return cmp.Or(cmp.Compare(a.total.Tensor, b.total.Tensor), cmp.Compare(a.total.Op, b.total.Op))
	})
}
