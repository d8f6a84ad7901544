package layers

import (
	"strings"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// inSlices is a layer that is cut in slices, each a layer of package nn with products, scales
// and histories of its own. A rank has the slices of [collective.Slices.Of], so that bits do
// not depend on how many ranks there are.
type inSlices[P any] struct {
	Slices   collective.Slices   // of what is cut; how results are summed
	Gradient collective.Exchange // how gradients of inputs are summed
	Parts    []*P                // the rank's slices; nil where one is empty

	// Sequence leaves a rank its rows, as [collective.Slices.Tokens] says, of what Forward and
	// Backward write: sums are reduce-scattered. What they are given is whole.
	Sequence bool

	size, dim, first int // of what is cut, columns of sums, the rank's first slice
}

// newInSlices returns the slices that a rank has of a layer in which size channels, heads or
// tokens are cut, and whose sums have rows of dim. part makes slice i, of those [lo, hi).
func newInSlices[P any](
	rank, ranks, size, dim int, s collective.Slices, part func(i, lo, hi int) (*P, error),
) (l inSlices[P], err error) {
	l = inSlices[P]{Slices: s, Gradient: s.Exchange, size: size, dim: dim}
	if err := s.Check(); err != nil {
		return l, err
	}
	if rank < 0 || rank >= ranks {
		return l, inputError("rank %d of %d", rank, ranks)
	}
	first, end := s.Of(rank, ranks)
	l.first = first
	for i := first; i < end; i++ {
		var p *P
		if lo, hi := s.Range(size, i); lo < hi {
			if p, err = part(i, lo, hi); err != nil {
				return l, err
			}
		}
		l.Parts = append(l.Parts, p)
	}
	return l, nil
}

// name names what is summed after the layer.
func (l *inSlices[P]) name(output, gradient string) {
	l.Slices.Name, l.Gradient.Name = output, gradient
}

// eachPart calls f for the slices that are not empty, with the place among the rank's and
// what [lo, hi) of that which is cut they have.
func (l *inSlices[P]) eachPart(f func(k int, p *P, lo, hi int) error) error {
	for k, p := range l.Parts {
		if p == nil {
			continue
		}
		lo, hi := l.Slices.Range(l.size, l.first+k)
		if err := f(k, p, lo, hi); err != nil {
			return err
		}
	}
	return nil
}

// cutsOf returns the weights of all slices, given those of one, from lo on.
func (l *inSlices[P]) cutsOf(f func(p *P, lo int) []cut) (cuts []cut) {
	l.eachPart(func(_ int, p *P, lo, _ int) error {
		cuts = append(cuts, f(p, lo)...)
		return nil
	})
	return cuts
}

// sum writes the sum over slices of what parts compute, each a whole of n elements, to dst, or
// the rank's rows of it, by an exchange. An empty part adds zeros.
func (l *inSlices[P]) sum(
	r *collective.Rank, x collective.Exchange, dst []float32, n int,
	compute func(k int, p *P, term []float32) error,
) error {
	terms := make([][]float32, len(l.Parts))
	for i := range terms {
		terms[i] = make([]float32, n)
	}
	if err := l.eachPart(func(k int, p *P, _, _ int) error { return compute(k, p, terms[k]) }); err != nil {
		return err
	}
	s := l.Slices
	s.Exchange = x
	if !l.Sequence {
		return r.AllReduceSlices(s, dst, terms)
	}
	s.Cols = l.dim
	return r.ReduceScatterSlices(s, dst, terms)
}

// forward writes the sum of results for x to y.
func (l *inSlices[P]) forward(r *collective.Rank, y, x []float32, f func(p *P, term []float32) error) error {
	return l.sum(r, l.Slices.Exchange, y, len(x), func(_ int, p *P, term []float32) error { return f(p, term) })
}

// backward writes the sum of gradients of inputs for dy to dx.
func (l *inSlices[P]) backward(r *collective.Rank, dx, dy []float32, f func(p *P, term []float32) error) error {
	return l.sum(r, l.Gradient, dx, len(dy), func(_ int, p *P, term []float32) error { return f(p, term) })
}

// layerOf returns the name of a layer, given that of its weight.
func layerOf(name string) string { return strings.TrimSuffix(name, ".weight") }

// sumCopies gives parameters, one of each of the rank's slices, the sum of the gradients of
// all slices.
func sumCopies(r *collective.Rank, count int, x collective.Exchange, copies []*nn.Param) error {
	if len(copies) == 0 {
		return inputError("%q: rank %d has no slices of %d", x.Name, r.ID(), count)
	}
	var terms [][]float32
	for _, p := range copies {
		terms = append(terms, p.Grad)
	}
	sum := make([]float32, len(copies[0].Grad))
	if err := r.AllReduceSlices(collective.Slices{Exchange: x, Count: count}, sum, terms); err != nil {
		return err
	}
	for _, p := range copies {
		copy(p.Grad, sum)
	}
	return nil
}

// resized returns memory of n elements, old if it is enough.
func resized(old []float32, n int) []float32 {
	if cap(old) < n {
		return make([]float32, n)
	}
	return old[:n]
}
