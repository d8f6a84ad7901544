package train

import (
	"cmp"
	"sync"

	"github.com/octavo-fp8/octavo/telemetry"
)

// Suspects is a [telemetry.Sink] that keeps the one event of each of the last steps
// that would best explain a loss or a gradient norm that is wrong: one with a NaN or
// an infinity, or else the one in which the largest share of values saturated, or
// else the largest share was flushed to zero; of equals, the first by tensor and
// operation. A step in which nothing was lost has none.
//
// The recorder hands out a step when it ends, so call its Step or Flush first. The
// zero value is ready to use, and safe for concurrent use; so is a nil one, to be
// asked.
type Suspects struct {
	mu    sync.Mutex
	steps [suspectSteps]struct {
		step int64
		telemetry.Event
		any bool
	}
}

// suspectSteps is the number of steps that are kept.
const suspectSteps = 8

// Event implements [telemetry.Sink]. The error is always nil.
func (s *Suspects) Event(e telemetry.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &s.steps[uint64(e.Step)%suspectSteps]
	if at.step != e.Step {
		at.step, at.any = e.Step, false
	}
	if lost(&e) && (!at.any || suspicion(&e, &at.Event) > 0) {
		at.Event, at.any = e, true
	}
	return nil
}

// Of returns what is most suspicious of a step, and whether there is anything: not
// if the step was more than a few steps ago.
func (s *Suspects) Of(step int64) (telemetry.Event, bool) {
	if s == nil {
		return telemetry.Event{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &s.steps[uint64(step)%suspectSteps]
	if at.step != step || !at.any {
		return telemetry.Event{}, false
	}
	return at.Event, true
}

func lost(e *telemetry.Event) bool { return nonFinite(e) || e.Stats.Lost() > 0 }

func nonFinite(e *telemetry.Event) bool {
	return e.First != telemetry.NonFinite{} || e.Stats.NonFinite()+e.Stats.BecameNonFinite > 0
}

// suspicion compares two events: above 0 if a is more suspicious than b.
func suspicion(a, b *telemetry.Event) int {
	if x, y := nonFinite(a), nonFinite(b); x != y {
		if x {
			return 1
		}
		return -1
	}
	return cmp.Or(
		cmp.Compare(a.SaturatedShare(), b.SaturatedShare()),
		cmp.Compare(a.FlushedShare(), b.FlushedShare()),
		cmp.Compare(b.Tensor, a.Tensor),
		cmp.Compare(b.Op, a.Op),
	)
}
