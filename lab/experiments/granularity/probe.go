package granularity

import (
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
)

// operand is a matrix of a linear layer that is looked at value by value.
type operand struct {
	name       string // as package nn tells a Reporter and a Tap
	role       scaling.Role
	rows, cols int
	values     []float32
	past       []float32 // amax of the tensor in the steps before
}

// opOf is the product whose operand of a role is looked at.
var opOf = map[scaling.Role]string{
	scaling.Input:    "forward",
	scaling.Weight:   "forward",
	scaling.Gradient: "input-gradient",
}

// probe keeps what goes into the quantizers of a model, of the first sequences of each
// batch.
type probe struct {
	model       *nn.Llama
	rows        int                 // tokens of those sequences
	activations map[string]*operand // inputs and gradients
	weights     []*operand
}

// newProbe returns a probe of a number of sequences. It taps the model from now on.
func newProbe(m *nn.Llama, sequences int) *probe {
	p := &probe{model: m, rows: sequences * m.Config().Context, activations: make(map[string]*operand)}
	m.Shared().Tap = p.tap
	return p
}

// watch returns an operand of a layer, such as "model.layers.0.mlp.up_proj". Its values
// are those of the last pass, and of a weight those that were there when keepWeights was
// called.
func (p *probe) watch(layer string, role scaling.Role) *operand {
	weight := p.model.Param(layer + ".weight")
	o := &operand{name: layer + ".input", role: role, rows: p.rows, cols: weight.Cols}
	switch role {
	case scaling.Weight:
		o.name, o.rows = layer+".weight", weight.Rows
		p.weights = append(p.weights, o)
	case scaling.Gradient:
		o.name, o.cols = layer+".gradient", weight.Rows
	}
	o.values = make([]float32, o.rows*o.cols)
	if role != scaling.Weight {
		p.activations[o.name] = o
	}
	return o
}

// tap is the model's [nn.Tap].
func (p *probe) tap(name string, values []float32, _, _ int) {
	if o := p.activations[name]; o != nil {
		copy(o.values, values)
	}
}

// keepWeights keeps the weights as they are before a step changes them.
func (p *probe) keepWeights() {
	for _, o := range p.weights {
		copy(o.values, p.model.Param(o.name).Value)
	}
}
