package oracle

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// ExactAt writes to exact and, unless that is nil, to bound what [Exact] and [Bound] give
// for the elements of C, of shape [M, N], at the places at: i·N + j for that of row i and
// column j; at nil is all of them, computed in one pass instead of two. It takes
// time in proportion to their number, and is told to o.Progress as "sample", or "exact" if
// they are all. old is all of the old C where o.Accumulate asks for one, otherwise nil.
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
	op := "sample"
	if at == nil {
		op = "exact"
	}
	err = p.elements(ctx, op, &o, at, func(t *tile) (func(x place), func()) {
		s := p.strips(t, tables)
		s.tame = bound != nil && d.tame(s)
		return func(x place) {
			e := newEnding(old, x.i*p.n+x.j, x.j, &o)
			var sum twofold
			var bits uint64
			sure := false
			if bound != nil {
				bound[x.to], sum, sure = d.element(s, x.i, x.j, e)
			}
			if sure {
				sum.addEnding(e)
				bits, sure = sum.bits(l)
			}
			if !sure {
				bits = s.exactBits(x.i, x.j, e, l)
			}
			exact[x.to] = fromBits[T](bits)
		}, func() { stripsPool.Put(s) }
	})
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

// checkPlaces checks the options, the places, nil being all, and the lengths of slices.
func (g grid) checkPlaces(exact int, bound []float64, old int, at []int, o *Options) error {
	places := len(at)
	if at == nil {
		places = g.m * g.n
	}
	switch {
	case o.Workers < 0:
		return fmt.Errorf("%d workers: want 0 or more", o.Workers)
	case exact != places:
		return fmt.Errorf("%d results for %d places", exact, places)
	case bound != nil && len(bound) != places:
		return fmt.Errorf("%d bounds for %d places", len(bound), places)
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
