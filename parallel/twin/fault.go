package twin

import (
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
	"github.com/octavo-fp8/octavo/train"
)

// FaultKind is what goes wrong.
type FaultKind uint8

const (
	// FlippedBit flips a bit of an element of a gradient, after it has been computed.
	FlippedBit FaultKind = iota

	// BitFlippedOnTheWay flips it after the rank has recorded what it has, before the sum.
	BitFlippedOnTheWay

	// StaleAmax has a rank begin a step with the scales and amaxes of the step before: it
	// has missed the last exchange.
	StaleAmax

	// DroppedRank leaves the share of a rank out, and the sum is divided by the number of
	// all ranks.
	DroppedRank

	// MixedScales exchanges the scales and amaxes of two operands on a rank.
	MixedScales
)

var faultKinds = enum.Enum[FaultKind]{
	Type: "FaultKind", What: "fault",
	Names: []string{
		"flipped-bit", "bit-flipped-on-the-way", "stale-amax", "dropped-rank", "mixed-scales",
	},
	Err: collective.ErrInput, Prefix: "twin",
}

// FaultKinds returns all kinds.
func FaultKinds() []FaultKind {
	return []FaultKind{FlippedBit, BitFlippedOnTheWay, StaleAmax, DroppedRank, MixedScales}
}

// String returns the name of k, such as "stale-amax".
func (k FaultKind) String() string                   { return faultKinds.String(k) }
func (k FaultKind) MarshalText() ([]byte, error)     { return faultKinds.MarshalText(k) }
func (k *FaultKind) UnmarshalText(text []byte) error { return faultKinds.UnmarshalText(k, text) }

// Fault is something that goes wrong on one rank in one step.
type Fault struct {
	Kind FaultKind `json:"kind"`
	Step int       `json:"step"` // from 0
	Rank int       `json:"rank"`

	// Tensor is the parameter whose gradient has a flipped bit; or the operand with a stale
	// amax or with another's scales, by the name of its history. No name is all operands,
	// for StaleAmax only.
	Tensor string `json:"tensor,omitempty"`

	Other string `json:"other,omitempty"` // operand that MixedScales takes the scales of

	Element int `json:"element,omitempty"` // whose bit is flipped
	Bit     int `json:"bit,omitempty"`     // from 0, the lowest of the mantissa, to 31, the sign
}

// Injector does faults to the models of ranks that [Gradients] is given: explicitly, and to
// nothing else, where each rank does one shard in a step, by which it counts steps. Scales
// that are wrong stay so in histories. The zero value does nothing. It must be a new one
// for each run. Safe for concurrent use by ranks.
type Injector struct {
	Faults []Fault

	mutex sync.Mutex
	ranks map[int]*rankSteps
}

// rankSteps is what an [Injector] knows of a rank.
type rankSteps struct {
	begun int             // steps
	state nn.ScalingState // that the last of them began with
}

// before does what happens before a rank begins a step, and reports whether its share is
// left out.
func (j *Injector) before(m train.Model, rank int) (dropped bool, err error) {
	if j == nil {
		return false, nil
	}
	scales := m.Shared().Scaling()
	state := scales.State()
	last, step := j.begin(rank, state)
	changed := false
	for _, f := range j.Faults {
		if f.Step != step || f.Rank != rank {
			continue
		}
		switch f.Kind {
		case DroppedRank:
			dropped = true
		case StaleAmax:
			if step == 0 {
				return false, inputError("%v in step 0: there is no step before it", f.Kind)
			}
			err, changed = stale(&state, last, f.Tensor), true
		case MixedScales:
			err, changed = mix(&state, f), true
		}
		if err != nil {
			return false, err
		}
	}
	if !changed {
		return dropped, nil
	}
	pass := scales.Pass()
	err = scales.Restore(state)
	scales.SetPass(pass)
	return dropped, err
}

// begin counts a step of a rank, and returns its number and the state that the one before
// began with.
func (j *Injector) begin(rank int, state nn.ScalingState) (last nn.ScalingState, step int) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.ranks == nil {
		j.ranks = map[int]*rankSteps{}
	}
	if j.ranks[rank] == nil {
		j.ranks[rank] = &rankSteps{}
	}
	r := j.ranks[rank]
	last, step = r.state, r.begun
	r.state, r.begun = state, step+1
	return last, step
}

// stale gives a state the histories of another, but for what the step has recorded.
func stale(state *nn.ScalingState, last nn.ScalingState, operand string) error {
	if _, ok := state.Histories.Histories[operand]; !ok && operand != "" {
		return inputError("%v of %q: there is no such operand with a history", StaleAmax, operand)
	}
	if len(state.Histories.Histories) == 0 {
		return inputError("%v: the recipes have no history: scales are just in time", StaleAmax)
	}
	all := maps.Clone(state.Histories.Histories) // it is kept for the next step, too
	for name, h := range all {
		if old, ok := last.Histories.Histories[name]; ok && (operand == "" || operand == name) {
			h.Blocks = slices.Clone(old.Blocks)
			h.Grid = old.Grid
			all[name] = h
		}
	}
	state.Histories.Histories = all
	return nil
}

// mix exchanges the histories of two operands.
func mix(state *nn.ScalingState, f Fault) error {
	all := maps.Clone(state.Histories.Histories) // it is kept for the next step, too
	a, okA := all[f.Tensor]
	b, okB := all[f.Other]
	if !okA || !okB {
		return inputError("%v of %q and %q: want two operands with histories", f.Kind, f.Tensor, f.Other)
	}
	if a.Format != b.Format || a.Block != b.Block || a.Grid != b.Grid {
		return inputError("%v of %q and %q: their formats or blocks differ", f.Kind, f.Tensor, f.Other)
	}
	all[f.Tensor], all[f.Other] = b, a
	state.Histories.Histories = all
	return nil
}

// after flips bits in the gradients of a rank, before or after it has recorded them.
func (j *Injector) after(m train.Model, rank int, sent bool) error {
	if j == nil {
		return nil
	}
	kind := FlippedBit
	if sent {
		kind = BitFlippedOnTheWay
	}
	j.mutex.Lock()
	step := j.ranks[rank].begun - 1
	j.mutex.Unlock()
	for _, f := range j.Faults {
		if f.Kind != kind || f.Step != step || f.Rank != rank {
			continue
		}
		if err := flip(m.Params(), f); err != nil {
			return err
		}
	}
	return nil
}

func flip(params []*nn.Param, f Fault) error {
	for _, p := range params {
		if p.Name != f.Tensor {
			continue
		}
		if f.Element < 0 || f.Element >= len(p.Grad) || f.Bit < 0 || f.Bit > 31 {
			return inputError("%v: element %d, bit %d of %q, which has %d elements",
				f.Kind, f.Element, f.Bit, f.Tensor, len(p.Grad))
		}
		v := &p.Grad[f.Element]
		*v = math.Float32frombits(math.Float32bits(*v) ^ 1<<f.Bit)
		return nil
	}
	return inputError("%v: there is no parameter %q", f.Kind, f.Tensor)
}
