package comparison

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/telemetry"
)

// health is a [telemetry.Sink] that keeps of each operand the largest shares that were lost in
// a step. It goes on after a resume where it was.
type health struct {
	thresholds telemetry.Thresholds
	delayed    bool // scales follow from the steps before, of which the first has none

	// before is the number of steps that were done before anything was kept, by a version
	// that did not.
	before   int
	steps    int   // with an operand that was judged
	last     int64 // of them
	operands map[string]*operandHealth
}

// operandHealth is what is kept of an operand in all steps and products.
type operandHealth struct {
	Tensor    string `json:"tensor"`
	First     int64  `json:"first"`  // step in which it was heard of
	Judged    bool   `json:"judged"` // a step was
	Saturated lost   `json:"saturated,omitzero"`
	Flushed   lost   `json:"flushed,omitzero"`
	NonFinite lost   `json:"non_finite,omitzero"`
}

// lost is the largest share of an operand that was lost in one way, and the steps in which
// that was too much.
type lost struct {
	Share     float64 `json:"share"`
	Step      int64   `json:"step"` // the first with that share
	Op        string  `json:"op"`
	First     int64   `json:"first"` // of the steps in which it was suspect or sick
	Last      int64   `json:"last"`
	Steps     int     `json:"steps"` // how many there were
	FirstSick int64   `json:"first_sick"`
	LastSick  int64   `json:"last_sick"`
	Sick      int     `json:"sick"` // in how many it was sick
}

// newHealth returns what judges a model.
func newHealth(cfg nn.Config) *health {
	h := &health{thresholds: telemetry.ThresholdsFor(fp8.E4M3), operands: map[string]*operandHealth{}}
	if f := cfg.FP8; f != nil {
		for _, o := range []nn.Operands{f.Forward, f.InputGradient, f.WeightGradient} {
			if min(o.A.Format.Bits(), o.B.Format.Bits()) < 8 {
				h.thresholds = telemetry.ThresholdsFor(o.A.Format)
			}
			h.delayed = h.delayed || o.A.Profile.Delayed() || o.B.Profile.Delayed()
		}
	}
	return h
}

// Event implements [telemetry.Sink].
func (h *health) Event(e telemetry.Event) error {
	if e.Stats.Elements == 0 { // it is the gradient of a step that was skipped, or empty
		return nil
	}
	o := h.operands[e.Tensor]
	if o == nil {
		o = &operandHealth{Tensor: e.Tensor, First: e.Step}
		h.operands[e.Tensor] = o
	}
	if n := e.Stats.NonFinite() + e.Stats.BecameNonFinite; n > 0 {
		o.NonFinite.add(&e, float64(n)/float64(e.Stats.Elements), telemetry.Sick)
	}
	if h.delayed && o.First == e.Step && h.before == 0 {
		return nil
	}
	if h.steps == 0 || h.last != e.Step {
		h.steps, h.last = h.steps+1, e.Step
	}
	o.Judged = true
	o.Saturated.add(&e, e.SaturatedShare(), h.thresholds.Saturated.Judge(e.SaturatedShare()))
	o.Flushed.add(&e, e.FlushedShare(), h.thresholds.Flushed.Judge(e.FlushedShare()))
	return nil
}

// add takes a share of a step, of which there may be others.
func (l *lost) add(e *telemetry.Event, share float64, judged telemetry.Health) {
	if share > l.Share {
		l.Share, l.Step, l.Op = share, e.Step, e.Op
	}
	if judged == telemetry.Healthy {
		return
	}
	if l.Steps == 0 {
		l.First = e.Step
	}
	if l.Steps == 0 || l.Last != e.Step {
		l.Steps, l.Last = l.Steps+1, e.Step
	}
	if judged == telemetry.Sick && l.Sick == 0 {
		l.FirstSick = e.Step
	}
	if judged == telemetry.Sick && (l.Sick == 0 || l.LastSick != e.Step) {
		l.Sick, l.LastSick = l.Sick+1, e.Step
	}
}

// sickSteps is the number of steps that make an operand sick. Training gets over one in which
// much was lost, as it does over one that is skipped.
const sickSteps = 2

func (l lost) health() telemetry.Health {
	switch {
	case l.Sick >= sickSteps:
		return telemetry.Sick
	case l.Steps > 0:
		return telemetry.Suspect
	}
	return telemetry.Healthy
}

// nonFiniteHealth is that of values that were or became NaN or infinite: one is enough.
func (o *operandHealth) nonFiniteHealth() telemetry.Health {
	if o.NonFinite.Steps > 0 {
		return telemetry.Sick
	}
	return telemetry.Healthy
}

// healthJSON is [health] in run.json.
type healthJSON struct {
	Before   int              `json:"before,omitempty"`
	Steps    int              `json:"steps"`
	Last     int64            `json:"last"`
	Operands []*operandHealth `json:"operands"`
}

// MarshalJSON implements [json.Marshaler].
func (h *health) MarshalJSON() ([]byte, error) {
	return json.Marshal(healthJSON{h.before, h.steps, h.last, h.sorted()})
}

// sorted returns the operands by name.
func (h *health) sorted() []*operandHealth {
	return slices.SortedFunc(maps.Values(h.operands), func(a, b *operandHealth) int { return cmp.Compare(a.Tensor, b.Tensor) })
}

// restore makes h what was saved after so many steps. A version that did not save it leaves
// those steps unjudged.
func (h *health) restore(saved json.RawMessage, steps int) error {
	if saved == nil {
		h.before = steps
		return nil
	}
	var state healthJSON
	if err := json.Unmarshal(saved, &state); err != nil {
		return fmt.Errorf("%s: health: %w", runFile, err)
	}
	if state.Before < 0 || state.Steps < 0 || state.Before+state.Steps > steps {
		return fmt.Errorf("%s: health is of %d and %d steps of %d", runFile, state.Before, state.Steps, steps)
	}
	operands := map[string]*operandHealth{}
	for _, o := range state.Operands {
		if o == nil {
			return fmt.Errorf("%s: health of an operand is null", runFile)
		}
		for _, l := range []lost{o.Saturated, o.Flushed, o.NonFinite} {
			if !(l.Share >= 0 && l.Share <= 1 && 0 <= l.Sick && l.Sick <= l.Steps && l.Steps <= steps) {
				return fmt.Errorf("%s: health of %q is a share of %v in %d steps, sick in %d, of %d", runFile, o.Tensor, l.Share, l.Steps, l.Sick, steps)
			}
		}
		operands[o.Tensor] = o
	}
	h.before, h.steps, h.last, h.operands = state.Before, state.Steps, state.Last, operands
	return nil
}
