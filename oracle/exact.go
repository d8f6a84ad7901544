package oracle

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/tensor"
)

// Exact writes the exact product to c, of shape [M, N] and dense: A·Bᵀ, with a of
// shape [M, K] and b of [N, K], plus bias and old C where the options ask for
// them, all in exact arithmetic and rounded once, to nearest even.
//
// The value of a code is code·scale, times or divided by the outer scale of its row where
// the tensor has one, never rounded, whatever the scales. A value that is NaN, as all are
// under a scale that is NaN, or infinite under a scale of 0, makes its result NaN; so does
// infinity times zero, and infinities of both signs. Other infinities remain,
// and a finite sum beyond the range of T becomes one. Every NaN is canonical
// (7FC00000 in float32). An exact zero is +0, whatever the signs of its terms; a
// result that underflows keeps its sign.
//
// The bits do not depend on Workers. It returns an error, and writes nothing, in
// the cases in which [gemm.Multiply] does. When ctx ends it returns ctx's error, within milliseconds unless K
// is in the millions, and what is in c is unspecified. c must not overlap the operands
// or the bias. Safe for concurrent use on distinct c.
func Exact[T gemm.Output](ctx context.Context, c []T, a, b *tensor.Tensor, o Options) error {
	p, err := newProduct(a, b)
	if err == nil {
		err = p.checkOptions(len(c), &o)
	}
	if err == nil {
		err = exact(ctx, c, p.grid, &o, func(t *tile) (exactSums, func()) {
			s := p.strips(t, nil)
			return s, func() { stripsPool.Put(s) }
		})
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

// exactSums are the exact results of a tile.
type exactSums interface {
	// exactBits returns the bits of element (i, j), rounded to nearest.
	exactBits(i, j int, e ending, l layout) uint64
}

// exact writes exact results to c. sums returns those of a tile, and what gives them back.
func exact[T gemm.Output](ctx context.Context, c []T, g grid, o *Options, sums func(t *tile) (exactSums, func())) error {
	l := layoutOf[T]()
	err := g.elements(ctx, "exact", o, nil, func(t *tile) (func(x place), func()) {
		s, end := sums(t)
		return func(x place) {
			c[x.to] = fromBits[T](s.exactBits(x.i, x.j, newEnding(c, x.to, x.j, o), l))
		}, end
	})
	if err == nil {
		reportNonFinite("exact", c, o)
	}
	return err
}

// ending is what is added to an element at the end.
type ending struct{ bias, old float32 }

// newEnding is what the options add to element at of column j, whose old C is in c.
func newEnding[T gemm.Output](c []T, at, j int, o *Options) (e ending) {
	if o.Bias != nil {
		e.bias = o.Bias[j]
	}
	if o.Accumulate {
		e.old = number.Float32(c[at])
	}
	return e
}

func (e ending) class() class { return classOf(e.bias).plus(classOf(e.old)) }

// exactBits returns the bits of element (i, j).
func (s *strips) exactBits(i, j int, e ending, l layout) uint64 {
	special := e.class()
	if s.special(i, j) {
		special = special.plus(s.p.class(i, j))
	}
	if special != finite {
		return special.bits(l)
	}
	if sum, sure := s.sum(i, j); sure {
		sum.addEnding(e)
		if b, sure := sum.bits(l); sure {
			return b
		}
	}
	return l.nearest(s.total(i, j, e))
}

// total adds all of element (i, j), which is finite, whatever it is.
func (s *strips) total(i, j int, e ending) unrounded {
	var sum, addends accumulator
	s.accumulate(&sum, i, j)
	if s.p.outers.none {
		sum.addFloat32(e.bias)
		sum.addFloat32(e.old)
		return sum.number()
	}
	addends.addFloat32(e.bias)
	addends.addFloat32(e.old)
	return sum.times(s.p.outers.at(i, j), &addends)
}

func (t *twofold) addEnding(e ending) {
	if e != (ending{}) {
		t.add(float64(e.bias))
		t.add(float64(e.old))
	}
}

// sum adds all blocks of element (i, j), whose rows are decoded from i0 and j0 on.
func (p *product) sum(sum *accumulator, a, b *integers, i, j, i0, j0 int) {
	e := unit(p.a.Format) + unit(p.b.Format)
	for q := range p.blocks() {
		lo, hi := p.span(q)
		sa, sb := p.scalesA.at(i, lo), p.scalesB.at(j, lo)
		for ; lo < hi; lo += pieceLength {
			sum.addScaled(a.dot(b, i-i0, j-j0, lo, min(lo+pieceLength, hi)), e, sa, sb)
		}
	}
}

// class is the class of element (i, j), one of whose rows has a code that is not
// finite or a scale that is NaN.
func (p *product) class(i, j int) class {
	return p.classOf(i, j, 0, p.k).times(p.outers.at(i, j))
}

// classOf is the class of the sum of products [lo, hi) of element (i, j).
func (p *product) classOf(i, j, lo, hi int) class {
	x, y := p.a.Row(i), p.b.Row(j)
	sum := finite
	for k := lo; k < hi; k++ {
		v, w := signOf(p.a, x[k], i, k), signOf(p.b, y[k], j, k)
		sum = sum.plus(classOfProduct(v, w))
	}
	return sum
}

// signOf is a number of the same class and sign as an element's value, code
// times scale: 0, ±1, an infinity or a NaN.
func signOf(t *tensor.Tensor, code byte, i, k int) float32 {
	v := t.Format.Float32(code)
	scale := t.Scale(i, k)
	zero := scale == 0
	switch {
	case scale != scale:
		return scale
	case classOf(v) != finite && zero:
		return float32(math.NaN())
	case classOf(v) != finite:
		return v
	case v == 0 || zero:
		return 0
	}
	return float32(math.Copysign(1, float64(v)))
}
