package train

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/telemetry"
)

// Suspects is a [telemetry.Sink] that says which tensor and operation to suspect when a
// loss or a gradient norm is wrong. Something is lost in every step, so that what lost
// most says little: a suspect is one of which clearly more was lost than in the steps
// before. Where none is, there is no evidence, and no suspect.
//
// Values of a step that were, or became, NaN or infinite are always evidence. The share
// of values that saturated is evidence, or of those that were flushed to zero, if at
// least 4 steps of the same tensor and operation are known before, it is at least twice
// the largest of the last 16 of them, and it exceeds that by at least 0.1 percent of the
// values.
//
// The one with evidence of values that are not finite is suspected first, then of
// saturated, then of flushed ones; of several, the one whose share exceeds its past by
// most; of equals, the first by tensor and operation.
//
// It is evidence of coincidence and not of a cause. Ask it of spikes that a run in
// higher precision on the same batches does not have.
//
// The recorder hands out a step when it ends, so call its Step or Flush first. The
// zero value is ready to use, and safe for concurrent use; so is a nil one, to be
// asked. Kept as JSON it goes on where it was.
type Suspects struct {
	mu       sync.Mutex
	operands map[operand]*lossHistory
}

const (
	suspectPast   = 16   // steps looked back on
	suspectLeast  = 4    // of which there must be so many
	suspectFactor = 2    // how far above the largest of them a share must be
	suspectShare  = 1e-3 // and by how much
)

// operand is what one operation did to one tensor.
type operand struct{ tensor, op string }

// The kinds of loss, the worst first.
const (
	lossNonFinite = iota
	lossSaturated
	lossFlushed
	lossKinds
)

// lossShares are those of one step by kind.
type lossShares [lossKinds]float64

// lossHistory is what an operand lost in the last steps.
type lossHistory struct {
	past     []lossShares // of the steps before the last one, oldest first
	last     lossShares
	event    telemetry.Event // of the last step
	restored bool            // the event has nothing but its step and names
}

func sharesOf(e *telemetry.Event) (s lossShares) {
	if n := e.Stats.NonFinite() + e.Stats.BecameNonFinite; n > 0 && e.Stats.Elements > 0 {
		s[lossNonFinite] = float64(n) / float64(e.Stats.Elements)
	} else if e.First != (telemetry.NonFinite{}) { // no block has to be encoded for it
		s[lossNonFinite] = 1
	}
	s[lossSaturated], s[lossFlushed] = e.SaturatedShare(), e.FlushedShare()
	return s
}

// Event implements [telemetry.Sink]. The error is always nil.
func (s *Suspects) Event(e telemetry.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.operands == nil {
		s.operands = make(map[operand]*lossHistory)
	}
	key, shares := operand{e.Tensor, e.Op}, sharesOf(&e)
	h := s.operands[key]
	switch {
	case h == nil:
		s.operands[key] = &lossHistory{last: shares, event: e}
	case h.event.Step != e.Step:
		h.end()
		h.last, h.event, h.restored = shares, e, false
	case h.restored || slices.Compare(shares[:], h.last[:]) > 0: // another part of the same step
		h.last, h.event, h.restored = shares, e, false
	}
	return nil
}

// end makes the last step one of the past.
func (h *lossHistory) end() {
	if len(h.past) == suspectPast {
		h.past = slices.Delete(h.past, 0, 1)
	}
	h.past = append(h.past, h.last)
}

// Of returns the suspect of a step, and whether there is one. With ops only those
// operations are looked at: of a loss, those before it. Only the last step that was
// recorded is known.
func (s *Suspects) Of(step int64, ops ...string) (telemetry.Event, bool) {
	if s == nil {
		return telemetry.Event{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var best *lossHistory
	var most evidence
	for key, h := range s.operands {
		if h.event.Step != step || h.restored || len(ops) > 0 && !slices.Contains(ops, key.op) {
			continue
		}
		if e, ok := h.evidence(); ok && (best == nil || moreSuspicious(e, h, most, best)) {
			best, most = h, e
		}
	}
	if best == nil {
		return telemetry.Event{}, false
	}
	return best.event, true
}

// evidence is by how much a share of a kind exceeds the largest of the past.
type evidence struct {
	kind   int
	excess float64
}

// evidence returns the worst kind of which there is some.
func (h *lossHistory) evidence() (evidence, bool) {
	for kind, share := range h.last {
		var largest float64
		for _, p := range h.past {
			largest = math.Max(largest, p[kind])
		}
		found := evidence{kind, share - largest}
		if kind == lossNonFinite {
			if share > 0 {
				return found, true
			}
			continue
		}
		if len(h.past) >= suspectLeast && share >= suspectFactor*largest && found.excess >= suspectShare {
			return found, true
		}
	}
	return evidence{}, false
}

func moreSuspicious(a evidence, of *lossHistory, b evidence, than *lossHistory) bool {
	return cmp.Or(
		cmp.Compare(a.kind, b.kind),
		cmp.Compare(b.excess, a.excess),
		cmp.Compare(of.event.Tensor, than.event.Tensor),
		cmp.Compare(of.event.Op, than.event.Op),
	) < 0
}

// suspectsState is [Suspects] in JSON.
type suspectsState struct {
	Version  int            `json:"version"`
	Operands []operandState `json:"operands"`
}

// operandState has the shares of the last steps by kind, oldest first; a kind is left
// out of which nothing was lost.
type operandState struct {
	Tensor    string    `json:"tensor"`
	Op        string    `json:"op"`
	Step      int64     `json:"step"` // the last one
	Steps     int       `json:"steps"`
	NonFinite []float64 `json:"non_finite,omitempty"`
	Saturated []float64 `json:"saturated,omitempty"`
	Flushed   []float64 `json:"flushed,omitempty"`
}

const suspectsVersion = 1

// MarshalJSON implements [json.Marshaler]. The events of the last step are not kept.
func (s *Suspects) MarshalJSON() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := suspectsState{Version: suspectsVersion, Operands: []operandState{}}
	for key, h := range s.operands {
		state.Operands = append(state.Operands, h.state(key))
	}
	slices.SortFunc(state.Operands, func(a, b operandState) int {
		return cmp.Or(cmp.Compare(a.Tensor, b.Tensor), cmp.Compare(a.Op, b.Op))
	})
	return json.Marshal(state)
}

func (h *lossHistory) state(key operand) operandState {
	all := append(slices.Clone(h.past), h.last)
	o := operandState{Tensor: key.tensor, Op: key.op, Step: h.event.Step, Steps: len(all)}
	for kind, list := range o.lists() {
		if slices.ContainsFunc(all, func(s lossShares) bool { return s[kind] != 0 }) {
			for _, s := range all {
				*list = append(*list, s[kind])
			}
		}
	}
	return o
}

func (o *operandState) lists() [lossKinds]*[]float64 {
	return [lossKinds]*[]float64{&o.NonFinite, &o.Saturated, &o.Flushed}
}

// UnmarshalJSON implements [json.Unmarshaler]. A state of another version is an error,
// [ErrVersion], and one that makes no sense is [ErrInput]; they leave s as it is.
func (s *Suspects) UnmarshalJSON(text []byte) error {
	var state suspectsState
	if err := json.Unmarshal(text, &state); err != nil {
		return err
	}
	if state.Version != suspectsVersion {
		return versionError("train: suspects of version %d: this package reads version %d", state.Version, suspectsVersion)
	}
	operands := make(map[operand]*lossHistory, len(state.Operands))
	for _, o := range state.Operands {
		h, err := o.history()
		if err != nil {
			return err
		}
		operands[operand{o.Tensor, o.Op}] = h
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.operands = operands
	return nil
}

func (o *operandState) history() (*lossHistory, error) {
	if o.Steps < 1 || o.Steps > suspectPast+1 {
		return nil, inputError("train: suspects: %q, %s has %d steps: want 1 to %d", o.Tensor, o.Op, o.Steps, suspectPast+1)
	}
	all := make([]lossShares, o.Steps)
	for kind, list := range o.lists() {
		if len(*list) != 0 && len(*list) != o.Steps {
			return nil, inputError("train: suspects: %q, %s has %d shares of %d steps", o.Tensor, o.Op, len(*list), o.Steps)
		}
		for i, share := range *list {
			if !(share >= 0 && share <= 1) {
				return nil, inputError("train: suspects: %q, %s has a share of %v", o.Tensor, o.Op, share)
			}
			all[i][kind] = share
		}
	}
	h := &lossHistory{past: all[: o.Steps-1 : o.Steps-1], last: all[o.Steps-1], restored: true}
	h.event.Step, h.event.Tensor, h.event.Op = o.Step, o.Tensor, o.Op
	return h, nil
}
