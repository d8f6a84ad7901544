package granularity

import (
	"context"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// operand is a matrix of a linear layer that is looked at value by value.
type operand struct {
	name       string // as package train tells a Reporter
	role       scaling.Role
	rows, cols int

	// values are magnitudes for inputs and gradients, which is all that formats and
	// recipes, symmetric as they are, depend on.
	values []float32

	past []float32 // amax of the tensor in the steps before
}

// opOf is the product whose operand of a role is looked at.
var opOf = map[scaling.Role]string{
	scaling.Input:    "forward",
	scaling.Weight:   "forward",
	scaling.Gradient: "input-gradient",
}

// probe shows the values that go into the quantizers of a model. A Reporter is told
// of blocks only, but of a block of two values it is told everything: the larger
// magnitude, the smaller one, and how many are zero. So the probe is a model with
// the same weights whose inputs and gradients are in blocks of two.
type probe struct {
	model    *nn.Llama
	of       *nn.Llama
	batch    int
	operands map[string]*operand
}

// newProbe returns a probe of m for batches of a number of sequences.
func newProbe(m *nn.Llama, batch int) (*probe, error) {
	recipes := nn.DefaultFP8()
	pairs := scaling.Default(scaling.Input)
	pairs.Block = tensor.Block{Rows: 1, Cols: 2}
	recipes.Forward.A, recipes.InputGradient.A = pairs, pairs
	cfg := m.Config()
	cfg.FP8 = &recipes
	model, err := nn.NewLlama(cfg, 0)
	if err != nil {
		return nil, err
	}
	p := &probe{model: model, of: m, batch: batch, operands: make(map[string]*operand)}
	model.Listen(p)
	return p, nil
}

// watch returns an operand of a layer, such as "model.layers.0.mlp.up_proj", whose
// values look will bring.
func (p *probe) watch(layer string, role scaling.Role) *operand {
	weight := p.of.Param(layer + ".weight")
	o := &operand{name: layer + ".input", role: role, rows: p.batch * p.of.Config().Context, cols: weight.Cols}
	switch role {
	case scaling.Weight:
		return &operand{name: layer + ".weight", role: role, rows: weight.Rows, cols: weight.Cols, values: weight.Value}
	case scaling.Gradient:
		o.name, o.cols = layer+".gradient", weight.Rows
	}
	o.values = make([]float32, o.rows*o.cols)
	p.operands[o.name] = o
	return o
}

// look brings the values of a step on the first sequences of its batch.
func (p *probe) look(ctx context.Context, tokens, targets []int32) error {
	for i, param := range p.of.Params() {
		copy(p.model.Params()[i].Value, param.Value)
	}
	seq := p.of.Config().Context
	n := p.batch * seq
	p.model.ZeroGrad()
	if _, err := p.model.Loss(ctx, tokens[:n], targets[:n], p.batch, seq); err != nil {
		return err
	}
	return p.model.Backward(ctx)
}

// Block implements tensor.Reporter. Goroutines report different blocks.
func (p *probe) Block(op, name string, row, col int, _ float32, st *fp8.Stats) {
	o := p.operands[name]
	if o == nil || op != opOf[o.role] {
		return
	}
	at := row*o.cols + 2*col
	o.values[at] = float32(st.Amax)
	if st.Elements == 2 {
		o.values[at+1] = float32(st.Smallest)
		if st.Zeros > 0 {
			o.values[at+1] = 0
		}
	}
}

// NonFinite implements tensor.Reporter; the optimizer refuses such a step.
func (p *probe) NonFinite(string, string, int, float64) {}
