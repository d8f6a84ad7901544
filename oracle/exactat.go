package oracle

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// ExactAt writes to exact and, unless that is nil, to bound what [Exact] and [Bound] give
// for the elements of C, of shape [M, N], at the places at: i·N + j for that of row i and
// column j. It takes time in proportion to their number, and is told to o.Progress as
// "sample". old is all of the old C where o.Accumulate asks for one, otherwise nil.
//
// It returns an error, and writes nothing, if Bound would, if there is no such place, or if
// a slice is not of the right length, and ctx's error when ctx ends. Results must not
// overlap operands. Safe for concurrent use on distinct results.
func ExactAt[T gemm.Output](ctx context.Context, exact []T, bound []float64, old []T, at []int, a, b *tensor.Tensor, acc Accumulation, o Options) error {
	p, err := newProduct(a, b)
	if err == nil && bound != nil {
		err = acc.check(&p)
	}
	if err == nil {
		err = p.checkPlaces(len(exact), bound, len(old), at, &o)
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	l := layoutOf[T]()
	var tables *[2][256]float64
	var d derivation
	if bound != nil {
		d = newDerivation(&p, acc, o, l)
		tables = &[2][256]float64{magnitudes(a.Format, acc.modeled()), magnitudes(b.Format, acc.modeled())}
	}
	err = p.tilesAt(ctx, "sample", &o, at, func(t *tile) error {
		s := p.strips(t, tables)
		defer stripsPool.Put(s)
		for _, x := range t.some {
			e := newEnding(old, x.i*p.n+x.j, x.j, &o)
			exact[x.to] = fromBits[T](s.exactBits(x.i, x.j, e, l))
			if bound != nil {
				bound[x.to] = d.element(s, x.i, x.j, e)
			}
			if err := t.done(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

// checkPlaces checks the options, the places and the lengths of slices.
func (g grid) checkPlaces(exact int, bound []float64, old int, at []int, o *Options) error {
	switch {
	case o.Workers < 0:
		return fmt.Errorf("%d workers: want 0 or more", o.Workers)
	case exact != len(at):
		return fmt.Errorf("%d results for %d places", exact, len(at))
	case bound != nil && len(bound) != len(at):
		return fmt.Errorf("%d bounds for %d places", len(bound), len(at))
	case o.Bias != nil && len(o.Bias) != g.n:
		return fmt.Errorf("bias of %d elements: want %d", len(o.Bias), g.n)
	case o.Accumulate && old != g.m*g.n:
		return fmt.Errorf("old C of %d elements: want %d", old, g.m*g.n)
	}
	for _, x := range at {
		if x < 0 || x >= g.m*g.n {
			return fmt.Errorf("place %d of a C of %dx%d", x, g.m, g.n)
		}
	}
	return nil
}
