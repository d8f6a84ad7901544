package scaling

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/octavo-fp8/octavo/fp8"
)

// Histories are the histories of a model's tensors by name: the scaling state
// that a checkpoint has to hold. The zero value is empty and ready to use. Not
// safe for concurrent use.
type Histories struct {
	step  int64
	named map[string]*History
	saved map[string]HistoryState // restored and not asked for yet
}

// Get returns the history of the named tensor, which it makes, or takes from
// the restored state, when it is asked for first. It is an error if r is not a
// delayed recipe, or not that of the history that is there.
func (hs *Histories) Get(name string, r Recipe) (*History, error) {
	h, err := NewHistory(r)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	if known := hs.named[name]; known != nil {
		if err := known.checkRecipe(r); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		return known, nil
	}
	if s, ok := hs.saved[name]; ok {
		if err := h.checkState(name, s); err != nil {
			return nil, err
		}
		h.restore(s)
		delete(hs.saved, name)
	}
	if hs.named == nil {
		hs.named = make(map[string]*History)
	}
	hs.named[name] = h
	return h, nil
}

// Update ends the step of every history.
func (hs *Histories) Update() {
	hs.step++
	for _, h := range hs.named {
		h.Update()
	}
}

// Step returns the number of updates.
func (hs *Histories) Step() int64 { return hs.step }

// StateVersion is the version of [State] that this package writes and reads.
const StateVersion = 1

// State is what [Histories] save: plain data, to be kept as JSON.
type State struct {
	Version   int                     `json:"version"`
	Step      int64                   `json:"step"`
	Histories map[string]HistoryState `json:"histories"`
}

// HistoryState is the saved state of one [History].
type HistoryState struct {
	Format  fp8.Format `json:"format"`
	Scale   Float      `json:"scale"`   // what values are multiplied by
	Current Float      `json:"current"` // amax of the step that has not ended
	Past    []Float    `json:"past"`    // amax of the steps before it, newest first
}

// Float is a float32 that survives JSON to the bit but for a NaN's payload:
// NaN and infinities, which JSON lacks, are written as strings.
type Float float32

// MarshalJSON implements [json.Marshaler].
func (f Float) MarshalJSON() ([]byte, error) {
	text := strconv.FormatFloat(float64(f), 'g', -1, 32)
	if !isFinite(float32(f)) {
		text = strconv.Quote(text)
	}
	return []byte(text), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (f *Float) UnmarshalJSON(data []byte) error {
	text := string(data)
	var quoted string
	if json.Unmarshal(data, &quoted) == nil {
		text = quoted
	}
	v, err := strconv.ParseFloat(text, 32)
	if err != nil {
		return fmt.Errorf("scaling: %s is not a float32", data)
	}
	*f = Float(v)
	return nil
}

// State returns a copy of the state of all histories.
func (hs *Histories) State() State {
	s := State{Version: StateVersion, Step: hs.step, Histories: make(map[string]HistoryState)}
	for name, h := range hs.named {
		s.Histories[name] = h.state()
	}
	for name, saved := range hs.saved {
		s.Histories[name] = saved.clone()
	}
	return s
}

// Restore replaces the state of all histories, those that were handed out before
// included, by a saved one. A history that the state lacks becomes empty. One
// whose length has changed meanwhile keeps its newest steps; steps it never had
// count as 0. It returns an error, and changes nothing, if the state does not
// pass [State.Check] or is of another format.
func (hs *Histories) Restore(s State) error {
	if err := s.Check(); err != nil {
		return err
	}
	for _, name := range s.names() {
		if h := hs.named[name]; h != nil {
			if err := h.checkState(name, s.Histories[name]); err != nil {
				return err
			}
		}
	}
	hs.step = s.Step
	hs.saved = make(map[string]HistoryState, len(s.Histories))
	for name, h := range s.Histories {
		hs.saved[name] = h.clone()
	}
	for name, h := range hs.named {
		h.restore(hs.saved[name])
		delete(hs.saved, name)
	}
	return nil
}

// Check returns an error that names the first value, by tensor in alphabetical
// order, that no history can have.
func (s State) Check() error {
	if s.Version != StateVersion {
		return fmt.Errorf("scaling: state of version %d: this package reads version %d", s.Version, StateVersion)
	}
	if s.Step < 0 {
		return fmt.Errorf("scaling: state of step %d", s.Step)
	}
	for _, name := range s.names() {
		h := s.Histories[name]
		if !h.Format.Valid() {
			return fmt.Errorf("scaling: state of %q: unknown format %v", name, h.Format)
		}
		if !(h.Scale > 0) || !isFinite(float32(h.Scale)) {
			return fmt.Errorf("scaling: state of %q: scale %v: want a finite number above 0", name, h.Scale)
		}
		for i, a := range append([]Float{h.Current}, h.Past...) {
			if a < 0 {
				return fmt.Errorf("scaling: state of %q: amax of %d steps ago is %v: want no negative number", name, i, a)
			}
		}
	}
	return nil
}

// names returns the names of the histories in alphabetical order.
func (s State) names() []string { return slices.Sorted(maps.Keys(s.Histories)) }

func (s HistoryState) clone() HistoryState {
	s.Past = slices.Clone(s.Past)
	return s
}

func (h *History) state() HistoryState {
	s := HistoryState{Format: h.format, Scale: Float(h.scale), Current: Float(h.amax[0]), Past: make([]Float, 0, len(h.amax)-1)}
	for i := len(h.amax) - 1; i > 0; i-- {
		s.Past = append(s.Past, Float(h.amax[i]))
	}
	return s
}

// checkState makes sure that a saved state's scale is for h's format.
func (h *History) checkState(name string, s HistoryState) error {
	if s.Format != h.format {
		return fmt.Errorf("scaling: state of %q is of %v, its history is of %v", name, s.Format, h.format)
	}
	return nil
}

// restore takes the zero state for that of an empty history.
func (h *History) restore(s HistoryState) {
	clear(h.amax)
	h.scale, h.amax[0] = 1, float32(s.Current)
	if s.Scale != 0 {
		h.scale = float32(s.Scale)
	}
	for i, a := range s.Past[:min(len(s.Past), len(h.amax)-1)] {
		h.amax[len(h.amax)-1-i] = float32(a)
	}
}

// Merge returns the state of data-parallel workers as one. It is as if a single
// worker had seen all of their tensors where states are merged before every
// [Histories.Update], or every worker observed a finite amax above 0 of every
// tensor in every step. Each amax becomes the largest, step by step counted from
// the newest; a NaN of any worker stays a NaN, so that it cannot hide behind
// another's number, and [History.Update] then treats it. Each scale becomes the
// smallest, the one that saturates nobody. A history that a worker lacks does
// not count; the longest and the largest step win. Merge is commutative and
// associative, and of one state it is a copy.
//
// It returns an error if a state does not pass [State.Check] or if workers have a
// history in different formats.
func Merge(states ...State) (State, error) {
	merged := State{Version: StateVersion, Histories: make(map[string]HistoryState)}
	for i, s := range states {
		if err := s.Check(); err != nil {
			return State{}, fmt.Errorf("worker %d: %w", i, err)
		}
		merged.Step = max(merged.Step, s.Step)
		for _, name := range s.names() {
			h, known := s.Histories[name], merged.Histories[name]
			if known.Scale != 0 && known.Format != h.Format {
				return State{}, fmt.Errorf("worker %d: scaling: state of %q is of %v, that of workers before is of %v", i, name, h.Format, known.Format)
			}
			merged.Histories[name] = mergeHistory(known, h)
		}
	}
	return merged, nil
}

// mergeHistory takes a zero a for one that is not there yet.
func mergeHistory(a, b HistoryState) HistoryState {
	if a.Scale == 0 {
		a.Scale = Float(math.Inf(1))
	}
	m := HistoryState{Format: b.Format, Scale: min(a.Scale, b.Scale), Current: max(a.Current, b.Current)}
	if len(a.Past) < len(b.Past) {
		a, b = b, a
	}
	m.Past = append([]Float{}, a.Past...)
	for i, p := range b.Past {
		m.Past[i] = max(m.Past[i], p)
	}
	return m
}
