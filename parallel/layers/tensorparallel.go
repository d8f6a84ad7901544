package layers

import (
	"fmt"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// MLP is [nn.MLP] tensor-parallel: its hidden channels are cut in slices, so that gate and
// up are cut by rows, which no sum crosses, and down by columns. Each slice is an nn.MLP
// of its own, with products, scales and histories of its own; results are summed over
// Slices, and so are the gradients of inputs, as Gradient says. A rank has the slices of
// [collective.Slices.Of] in Parts, of which empty ones are nil, and the bits do not depend on
// how many ranks there are. With one slice they are those of nn.MLP.
//
// Sequence leaves a rank its rows, as [collective.Slices.Tokens] says, of what Forward and
// Backward write.
type MLP struct{ inSlices[nn.MLP] }

// NewMLP returns the slices of an MLP that a rank has, with weights of zero, named
// prefix+"slice.3.gate_proj.weight" and so on. Gradients of inputs are summed as results
// are. Each rank's options need an [nn.Shared] of its own. The error is
// [collective.ErrInput] or that of [nn.NewMLP].
func NewMLP(
	rank, ranks int, prefix string, dim, hidden int, s collective.Slices, o nn.Options,
) (*MLP, error) {
	l, err := newInSlices(rank, ranks, hidden, dim, s, func(i, lo, hi int) (*nn.MLP, error) {
		return nn.NewMLP(fmt.Sprintf("%sslice.%d.", prefix, i), dim, hi-lo, o)
	})
	l.name(prefix+"output", prefix+"input_gradient")
	return &MLP{l}, err
}

// Params returns the weights of the rank's slices: gate, up and down of each.
func (m *MLP) Params() (params []*nn.Param) {
	for _, c := range m.cuts() {
		params = append(params, c.Param)
	}
	return params
}

func (m *MLP) cuts() []cut {
	return m.cutsOf(func(p *nn.MLP, lo int) []cut {
		return []cut{newCut(p.Gate.Weight, lo, 0), newCut(p.Up.Weight, lo, 0), newCut(p.Down.Weight, 0, lo)}
	})
}

// Load fills the weights from those of a whole MLP: gate and up are [hidden, dim], down is
// [dim, hidden].
func (m *MLP) Load(gate, up, down []float32) error {
	if n := m.dim * m.size; len(gate) != n || len(up) != n || len(down) != n {
		return inputError("weights of %d, %d and %d elements are not those of an MLP of %d by %d",
			len(gate), len(up), len(down), m.dim, m.size)
	}
	whole := []*nn.Param{
		{Rows: m.size, Cols: m.dim, Value: gate}, {Rows: m.size, Cols: m.dim, Value: up},
		{Rows: m.dim, Cols: m.size, Value: down},
	}
	for i, c := range m.cuts() {
		if err := c.Load(whole[i%len(whole)]); err != nil {
			return err
		}
	}
	return nil
}

// Forward writes the result for x to y, both [rows, dim] and the same on all ranks, as
// [nn.MLP.Forward] does.
func (m *MLP) Forward(r *collective.Rank, y, x []float32, rows int) error {
	return m.forward(r, y, x, func(p *nn.MLP, term []float32) error { return p.Forward(r.Context(), term, x, rows) })
}

// Backward writes the gradient of x to dx, and adds those of the rank's weights to their
// Grad, as [nn.MLP.Backward] does.
func (m *MLP) Backward(r *collective.Rank, dx, dy []float32) error {
	return m.backward(r, dx, dy, func(p *nn.MLP, term []float32) error { return p.Backward(r.Context(), term, dy) })
}

// linear is an [nn.Linear] tensor-parallel, by columns in the words of Megatron-LM (arXiv
// 1909.08053): its outputs are cut in slices, all ranks have the whole input, and the gradient
// of the input is a sum over slices.
type linear struct {
	inSlices[nn.Linear]
	rows int
}

// newLinear returns the slices of a layer that a rank has, each made by part. The name is like
// "up_proj.weight". The error is [collective.ErrInput] or that of part.
func newLinear(
	rank, ranks int, name string, out, in int, s collective.Slices,
	part func(i, lo, hi int) (*nn.Linear, error),
) (*linear, error) {
	l, err := newInSlices(rank, ranks, out, in, s, part)
	l.name(layerOf(name), layerOf(name))
	return &linear{inSlices: l}, err
}

func (l *linear) cuts() []cut {
	return l.cutsOf(func(p *nn.Linear, lo int) []cut { return []cut{newCut(p.Weight, lo, 0)} })
}

// Forward writes the rank's slices of the outputs for x, [rows, in], to y.
func (l *linear) Forward(r *collective.Rank, y [][]float32, x []float32, rows int) error {
	l.rows = rows
	return l.eachPart(func(k int, p *nn.Linear, _, _ int) error { return p.Forward(r.Context(), y[k], x, rows) })
}

// Backward takes the gradient dy of what Forward wrote, writes that of x to dx and adds those
// of the rank's weights to their Grad.
func (l *linear) Backward(r *collective.Rank, dx []float32, dy [][]float32) error {
	return l.sum(r, l.Gradient, dx, l.rows*l.dim, func(k int, p *nn.Linear, term []float32) error {
		return p.Backward(r.Context(), term, dy[k])
	})
}
