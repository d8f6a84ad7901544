package telemetry

import (
	"errors"
	"fmt"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
)

// Recorder is a tensor.Reporter that sums up what it hears. The zero Recorder
// has no sinks and is ready to use, at step 0; so is a nil one, which does
// nothing. A Recorder is safe for concurrent use and must not be copied.
//
// A type that embeds a Recorder and has a Block of its own needs a Blocks of its own,
// too, or it is not called: see [tensor.BlocksReporter].
type Recorder struct {
	sinks []Sink

	// closing is held while a step is closed and its events are handed out, mu
	// while the fields below are touched, so that a slow sink keeps nobody from
	// reporting. step changes only under both.
	closing sync.Mutex
	mu      sync.Mutex
	step    int64
	all     map[seriesKey]*series
	first   NonFinite
	err     error
}

type seriesKey struct{ tensor, op string }

// series is what is known of one tensor and operation.
type series struct {
	open  Event // of the unfinished step
	total Total // of the finished ones
}

// New returns a Recorder at step 0 that hands its events to sinks. It panics if one is
// nil.
func New(sinks ...Sink) *Recorder {
	for _, s := range sinks {
		if s == nil {
			panic("telemetry: nil sink")
		}
	}
	return &Recorder{sinks: sinks}
}

// Block counts the encoding of one block; see tensor.Reporter. A Detail of st
// is ignored. Once a tensor and operation are known, nothing is allocated. It panics if
// st is nil.
func (r *Recorder) Block(op, tensor string, row, col int, scale float32, st *fp8.Stats) {
	if r == nil {
		return
	}
	if st == nil {
		panic("telemetry: nil Stats")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.series(op, tensor).open.add(r.step, row, col, scale, st)
}

// Blocks counts the encoding of consecutive blocks; see tensor.BlocksReporter. It is
// [Recorder.Block] of each. It panics if there are fewer scales than stats, a grid has no
// columns or first is negative.
func (r *Recorder) Blocks(op, tensor string, first, gridCols int, scales []float32, stats []fp8.Stats) {
	if r == nil || len(stats) == 0 {
		return
	}
	if first < 0 || gridCols <= 0 || len(scales) < len(stats) {
		panic("telemetry: blocks without a place, scales or columns")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	open := &r.series(op, tensor).open
	row, col := first/gridCols, first%gridCols
	for i := range stats {
		open.add(r.step, row, col, scales[i], &stats[i])
		if col++; col == gridCols {
			row, col = row+1, 0
		}
	}
}

// NonFinite notes where a tensor is NaN or infinite; see tensor.Reporter. It
// counts nothing: that is in the Stats of the block. A finite value is ignored.
func (r *Recorder) NonFinite(op, tensor string, index int, value float64) {
	if r == nil || !isNonFinite(value) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := NonFinite{Step: r.step, Tensor: tensor, Op: op, Index: index, Value: value}
	if open := &r.series(op, tensor).open; !open.First.exists() {
		open.First = n
	}
	if !r.first.exists() || n.Step < r.first.Step {
		r.first = n
	}
}

// series returns the series of a tensor and operation. r.mu must be held.
func (r *Recorder) series(op, tensor string) *series {
	key := seriesKey{tensor, op}
	s := r.all[key]
	if s == nil {
		names := Summary{Tensor: tensor, Op: op}
		s = &series{open: Event{Summary: names}, total: Total{Summary: names}}
		if r.all == nil {
			r.all = make(map[seriesKey]*series)
		}
		r.all[key] = s
	}
	return s
}

// Step ends the current step and begins step n; usually n is one more. Each
// sink in turn receives an event for every tensor and operation heard of in the
// step that ends, sorted by tensor and operation; for an empty step, none. If
// n is the current step, its later events are separate ones of the same number.
//
// It returns the first error of each sink, joined. An error keeps nothing from
// being handed out and nothing out of the totals.
//
// A sink must not call Step or Flush; all other methods it may.
func (r *Recorder) Step(n int64) error {
	if r == nil {
		return nil
	}
	r.closing.Lock()
	defer r.closing.Unlock()
	return r.closeStep(n)
}

// Flush is [Recorder.Step] without a change of number. It is needed after the
// last step.
func (r *Recorder) Flush() error {
	if r == nil {
		return nil
	}
	r.closing.Lock()
	defer r.closing.Unlock()
	return r.closeStep(r.step)
}

func (r *Recorder) closeStep(next int64) error {
	events := r.takeEvents(next)
	var errs []error
	for _, sink := range r.sinks {
		if err := handOut(sink, events); err != nil {
			errs = append(errs, err)
		}
	}
	err := errors.Join(errs...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
	return err
}

// takeEvents moves the open step to the totals and returns its events.
func (r *Recorder) takeEvents(next int64) []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var events []Event
	for _, s := range r.sorted() {
		if !s.heard() {
			continue
		}
		e := s.open
		e.Step = r.step
		events = append(events, e)
		s.total.Events++
		s.total.Summary.merge(&e.Summary)
		s.open = Event{Summary: Summary{Tensor: e.Tensor, Op: e.Op}}
	}
	r.step = next
	return events
}

// heard reports whether anything was heard in the open step.
func (s *series) heard() bool { return s.open.Blocks != 0 || s.open.First.exists() }

func handOut(sink Sink, events []Event) error {
	var first error
	for _, e := range events {
		if err := sink.Event(e); err != nil && first == nil {
			first = fmt.Errorf("telemetry: event of step %d, tensor %q, operation %q: %w", e.Step, cut(e.Tensor), cut(e.Op), err)
		}
	}
	return first
}

// Err returns the first error that any step returned, or nil.
func (r *Recorder) Err() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
