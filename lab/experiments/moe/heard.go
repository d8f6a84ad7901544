package moe

import (
	"fmt"

	"github.com/octavo-fp8/octavo/telemetry"
)

// operand is one of those of an expert's products.
type operand struct {
	what   string // in words
	tensor string // in names of taps and of telemetry, behind that of the expert
	op     string // of telemetry: the product that it is an operand of
}

// Operands by their index.
const (
	inputOfGate = iota
	inputOfDown
	gradientOfGate
	gradientOfDown
)

func operands() []operand {
	return []operand{
		{"input of gate and up", "gate_proj.input", "forward"},
		{"input of down", "down_proj.input", "forward"},
		{"gradient of gate", "gate_proj.gradient", "input-gradient"},
		{"gradient of down", "down_proj.gradient", "input-gradient"},
	}
}

// place is where an operand is.
type place struct {
	operand int
	mixture int // of the layers with experts
	expert  int // the number of experts for the shared one
}

// tensor returns the name of an operand.
func (s study) tensor(p place) string {
	c := s.config()
	of := fmt.Sprintf("experts.%d", p.expert)
	if p.expert == c.Experts.Router.Experts {
		of = "shared_experts"
	}
	return fmt.Sprintf("model.layers.%d.mlp.%s.%s", c.Dense+p.mixture, of, operands()[p.operand].tensor)
}

// places are all operands of experts, shared ones last.
func (s study) places() (all []place) {
	for o := range operands() {
		for m := range s.mixtures() {
			for e := range s.experts() + 1 {
				all = append(all, place{o, m, e})
			}
		}
	}
	return all
}

// heard is what telemetry said of an operand in a step.
type heard struct {
	place
	step                         int
	amax                         float64
	elements, saturated, flushed int64
}

// ears hear of the operands of experts.
type ears struct {
	names map[[2]string]place // by tensor and op
	to    *result
}

func newEars(s study, to *result) *ears {
	e := &ears{make(map[[2]string]place), to}
	for _, p := range s.places() {
		e.names[[2]string{s.tensor(p), operands()[p.operand].op}] = p
	}
	return e
}

// Event implements [telemetry.Sink].
func (e *ears) Event(v telemetry.Event) error {
	if p, ok := e.names[[2]string{v.Tensor, v.Op}]; ok {
		e.to.heard = append(e.to.heard, heard{
			place: p, step: int(v.Step), amax: v.Stats.Amax, elements: v.Stats.Elements,
			saturated: v.Stats.Saturated(), flushed: v.Stats.Flushed,
		})
	}
	return nil
}
