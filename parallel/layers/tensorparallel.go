package layers

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
)

// MLP is [nn.MLP] tensor-parallel: its hidden channels are cut in slices, so that gate and
// up are cut by rows, which no sum crosses, and down by columns. Each slice is an nn.MLP
// of its own, with products, scales and histories of its own; results are summed over
// slices, and so are the gradients of inputs. A rank has the slices of [Slices.Of], and
// the bits do not depend on how many ranks there are. With one slice they are those of
// nn.MLP.
type MLP struct {
	Slices   Slices    // of hidden channels; how results are summed
	Gradient Exchange  // how gradients of inputs are summed
	Parts    []*nn.MLP // the rank's slices; nil where one is empty

	// Sequence leaves a rank its rows, as [Slices.Tokens] says, of what Forward and Backward
	// write: sums are reduce-scattered. What they are given is whole.
	Sequence bool

	dim, hidden, first int
}

// NewMLP returns the slices of an MLP that a rank has, with weights of zero, named
// prefix+"slice.3.gate_proj.weight" and so on. Gradients of inputs are summed as results
// are. Each rank's options need an [nn.Shared] of its own. The error is [ErrInput] or
// that of [nn.NewMLP].
func NewMLP(rank, ranks int, prefix string, dim, hidden int, s Slices, o nn.Options) (*MLP, error) {
	m := &MLP{Slices: s, Gradient: s.Exchange, dim: dim, hidden: hidden}
	m.Slices.Name, m.Gradient.Name = prefix+"output", prefix+"input_gradient"
	err := eachSlice(&s, rank, ranks, hidden, func(i, lo, hi int) error {
		if lo == hi {
			m.Parts = append(m.Parts, nil)
			return nil
		}
		part, err := nn.NewMLP(fmt.Sprintf("%sslice.%d.", prefix, i), dim, hi-lo, o)
		m.Parts = append(m.Parts, part)
		return err
	})
	m.first, _ = s.Of(rank, max(ranks, 1))
	return m, err
}

// eachSlice calls f for the slices of [0, n) that a rank has.
func eachSlice(s *Slices, rank, ranks, n int, f func(i, lo, hi int) error) error {
	if err := s.Check(); err != nil {
		return err
	}
	if rank < 0 || rank >= ranks {
		return inputError("rank %d of %d", rank, ranks)
	}
	first, end := s.Of(rank, ranks)
	for i := first; i < end; i++ {
		lo, hi := s.Range(n, i)
		if err := f(i, lo, hi); err != nil {
			return err
		}
	}
	return nil
}

// Params returns the weights of the rank's slices: gate, up and down of each.
func (m *MLP) Params() (params []*nn.Param) {
	for _, part := range m.Parts {
		if part != nil {
			params = append(params, part.Params()...)
		}
	}
	return params
}

// cuts returns the weights of the rank's slices: gate, up and down of each.
func (m *MLP) cuts() (cuts []cut) {
	for k, part := range m.Parts {
		if part != nil {
			lo, _ := m.Slices.Range(m.hidden, m.first+k)
			cuts = append(cuts, newCut(part.Gate.Weight, lo, 0), newCut(part.Up.Weight, lo, 0),
				newCut(part.Down.Weight, 0, lo))
		}
	}
	return cuts
}

// Load fills the weights from those of a whole MLP: gate and up are [hidden, dim], down is
// [dim, hidden].
func (m *MLP) Load(gate, up, down []float32) error {
	if n := m.dim * m.hidden; len(gate) != n || len(up) != n || len(down) != n {
		return inputError("weights of %d, %d and %d elements are not those of an MLP of %d by %d",
			len(gate), len(up), len(down), m.dim, m.hidden)
	}
	return loadCuts(m.cuts(), []*nn.Param{
		{Rows: m.hidden, Cols: m.dim, Value: gate}, {Rows: m.hidden, Cols: m.dim, Value: up},
		{Rows: m.dim, Cols: m.hidden, Value: down},
	})
}

// Forward writes the result for x to y, both [rows, dim] and the same on all ranks, as
// [nn.MLP.Forward] does.
func (m *MLP) Forward(r *Rank, y, x []float32, rows int) error {
	return sumLayer(r, m.sums(m.Slices.Exchange), m.Sequence, y, len(x), m.Parts,
		func(_ int, p *nn.MLP, term []float32) error { return p.Forward(r.ctx, term, x, rows) })
}

// Backward writes the gradient of x to dx, and adds those of the rank's weights to their
// Grad, as [nn.MLP.Backward] does.
func (m *MLP) Backward(r *Rank, dx, dy []float32) error {
	return sumLayer(r, m.sums(m.Gradient), m.Sequence, dx, len(dy), m.Parts,
		func(_ int, p *nn.MLP, term []float32) error { return p.Backward(r.ctx, term, dy) })
}

// sums returns how results, or gradients, are summed.
func (m *MLP) sums(x Exchange) Slices { return m.Slices.by(x, m.Sequence, m.dim) }

// by returns the slices with an exchange of their sums. Where these are scattered they are
// rows of dim.
func (s Slices) by(x Exchange, scatter bool, dim int) Slices {
	if s.Exchange = x; scatter {
		s.Cols = dim
	}
	return s
}

// sumLayer writes the sum over slices of what parts compute, each a whole of n elements, to
// dst, or the rank's rows of it. A part that is nil adds zeros.
func sumLayer[P any](
	r *Rank, s Slices, scatter bool, dst []float32, n int, parts []*P,
	compute func(i int, p *P, term []float32) error,
) error {
	terms := make([][]float32, len(parts))
	for i, p := range parts {
		terms[i] = make([]float32, n)
		if p == nil {
			continue
		}
		if err := compute(i, p, terms[i]); err != nil {
			return err
		}
	}
	if scatter {
		return r.ReduceScatterSlices(s, dst, terms)
	}
	return r.AllReduceSlices(s, dst, terms)
}

// linear is an [nn.Linear] tensor-parallel. By columns, in the words of Megatron-LM (arXiv
// 1909.08053), its outputs are cut in slices: all ranks have the whole input, each the
// output of its slices, and the gradient of the input is a sum over slices. By rows its
// inputs are cut: each rank has the input of its slices, and the output, whole on all
// ranks, is a sum. Each slice is an nn.Linear of its own; see [MLP].
type linear struct {
	Slices Slices // of outputs, or of inputs; how the sum is done
	ByRows bool
	Parts  []*nn.Linear // the rank's slices; nil where one is empty

	// Sequence leaves a rank its rows, as [Slices.Tokens] says, of the sum.
	Sequence bool

	out, in, first, rows int
}

// newLinear returns the slices of a layer that a rank has, with weights of zero, named
// like "up_proj.slice.3.weight". The error is [ErrInput] or that of [nn.NewLinear].
func newLinear(rank, ranks int, name string, out, in int, byRows bool, s Slices, o nn.Options) (*linear, error) {
	l := &linear{Slices: s, ByRows: byRows, out: out, in: in}
	layer := layerOf(name)
	l.Slices.Name = layer
	err := eachSlice(&s, rank, ranks, l.cut(), func(i, lo, hi int) error {
		sliceOut, sliceIn := hi-lo, in
		if byRows {
			sliceOut, sliceIn = out, hi-lo
		}
		if lo == hi {
			l.Parts = append(l.Parts, nil)
			return nil
		}
		part, err := nn.NewLinear(fmt.Sprintf("%s.slice.%d.weight", layer, i), sliceOut, sliceIn, o)
		l.Parts = append(l.Parts, part)
		return err
	})
	l.first, _ = s.Of(rank, max(ranks, 1))
	return l, err
}

// layerOf returns the name of a layer, given that of its weight.
func layerOf(name string) string { return strings.TrimSuffix(name, ".weight") }

// cut returns how many channels are cut in slices.
func (l *linear) cut() int {
	if l.ByRows {
		return l.in
	}
	return l.out
}

// cuts returns the weights of the rank's slices.
func (l *linear) cuts() (cuts []cut) {
	for k, part := range l.Parts {
		if part == nil {
			continue
		}
		lo, _ := l.Slices.Range(l.cut(), l.first+k)
		if l.ByRows {
			cuts = append(cuts, newCut(part.Weight, 0, lo))
		} else {
			cuts = append(cuts, newCut(part.Weight, lo, 0))
		}
	}
	return cuts
}

// Load fills the weights from a whole one, [out, in].
func (l *linear) Load(weight []float32) error {
	if len(weight) != l.out*l.in {
		return inputError("%q: a weight of %d elements is not [%d, %d]",
			l.Slices.Name, len(weight), l.out, l.in)
	}
	return loadCuts(l.cuts(), []*nn.Param{{Rows: l.out, Cols: l.in, Value: weight}})
}

// Forward writes x·Wᵀ. By columns x has one slice, the whole [rows, in], and y has one for
// each of the rank's, [rows, its outputs]; by rows x has those and y one, [rows, out].
// Slices of x must stay as they are until Backward.
func (l *linear) Forward(r *Rank, y, x [][]float32, rows int) error {
	l.rows = rows
	forward := func(p *nn.Linear, y, x []float32) error { return p.Forward(r.ctx, y, x, rows) }
	if l.ByRows {
		return l.sum(r, y, x, l.out, forward)
	}
	return l.each(y, x, forward)
}

// Backward takes the gradient dy of what Forward wrote, writes that of x to dx, in slices
// as they were there, and adds those of the rank's weights to their Grad.
func (l *linear) Backward(r *Rank, dx, dy [][]float32) error {
	backward := func(p *nn.Linear, dx, dy []float32) error { return p.Backward(r.ctx, dx, dy) }
	if l.ByRows {
		return l.each(dx, dy, backward)
	}
	return l.sum(r, dx, dy, l.in, backward)
}

// each computes the rank's slices of to from one whole.
func (l *linear) each(to, from [][]float32, f func(p *nn.Linear, to, from []float32) error) error {
	if err := l.check(from, to); err != nil {
		return err
	}
	for i, p := range l.Parts {
		if p == nil {
			continue
		}
		if err := f(p, to[i], from[0]); err != nil {
			return err
		}
	}
	return nil
}

// sum computes one whole, of so many columns, from the rank's slices.
func (l *linear) sum(
	r *Rank, to, from [][]float32, cols int, f func(p *nn.Linear, to, from []float32) error,
) error {
	if err := l.check(to, from); err != nil {
		return err
	}
	s := l.Slices.by(l.Slices.Exchange, l.Sequence, cols)
	return sumLayer(r, s, l.Sequence, to[0], l.rows*cols, l.Parts,
		func(i int, p *nn.Linear, term []float32) error { return f(p, term, from[i]) })
}

func (l *linear) check(whole, slices [][]float32) error {
	if len(whole) != 1 || len(slices) != len(l.Parts) {
		return inputError("%q: %d whole arrays and %d slices: want 1 and %d",
			l.Slices.Name, len(whole), len(slices), len(l.Parts))
	}
	return nil
}
