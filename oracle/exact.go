package oracle

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// Exact writes the exact product to c, of shape [M, N] and dense: A·Bᵀ, with a of
// shape [M, K] and b of [N, K], plus bias and old C where the options ask for
// them, all in exact arithmetic and rounded once, to nearest even.
//
// The value of a code is code·scale, never rounded, whatever the scales. A value
// that is NaN, or infinite under a scale of 0, makes its result NaN; so does
// infinity times zero, and infinities of both signs. Other infinities remain,
// and a finite sum beyond the range of T becomes one. Every NaN is canonical
// (7FC00000 in float32). An exact zero is +0, whatever the signs of its terms; a
// result that underflows keeps its sign.
//
// The bits do not depend on Workers. It returns an error, and writes nothing, in
// the cases in which [gemm.Multiply] does, and panics if c or the bias is not of
// the right length. When ctx ends it returns ctx's error, within milliseconds unless K
// is in the millions, and what is in c is unspecified. c must not overlap the operands
// or the bias. Safe for concurrent use on distinct c.
func Exact[T gemm.Output](ctx context.Context, c []T, a, b *tensor.Tensor, o Options) error {
	p, err := newProduct(a, b)
	if err == nil {
		err = p.checkOptions(len(c), &o)
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	l := layoutOf[T]()
	err = p.sums(ctx, &o, func(i, j int, sum *accumulator, special class) {
		at := i*p.n + j
		if o.Bias != nil {
			special = special.plus(sum.addAny(o.Bias[j]))
		}
		if o.Accumulate {
			special = special.plus(sum.addAny(widen(c[at])))
		}
		if special != finite {
			c[at] = fromBits[T](special.bits(l))
			return
		}
		c[at] = fromBits[T](l.nearest(sum.number()))
	})
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	reportNonFinite("exact", c, &o)
	return nil
}

// addAny adds x where it is finite and returns its class.
func (a *accumulator) addAny(x float32) class {
	c := classOf(x)
	if c == finite {
		a.addFloat32(x)
	}
	return c
}

// exactStrips is what a worker decodes.
type exactStrips struct{ a, b integers }

var exactPool = sync.Pool{New: func() any { return new(exactStrips) }}

// sums calls out with the exact sum of every element or, where that is not a
// number, its class.
func (p *product) sums(ctx context.Context, o *Options, out func(i, j int, sum *accumulator, special class)) error {
	split := wide(p.a.Format) && wide(p.b.Format)
	return p.tiles(ctx, "exact", o, func(t *tile) error {
		s := exactPool.Get().(*exactStrips)
		defer exactPool.Put(s)
		s.a.decode(p.a, t.i0, t.i1, split)
		s.b.decode(p.b, t.j0, t.j1, false)
		var sum accumulator
		for i := t.i0; i < t.i1; i++ {
			for j := t.j0; j < t.j1; j++ {
				sum = accumulator{}
				special := finite
				if s.a.special[i-t.i0] || s.b.special[j-t.j0] {
					special = p.class(i, j)
				} else {
					p.sum(&sum, &s.a, &s.b, i, j, t.i0, t.j0)
				}
				out(i, j, &sum, special)
				if err := t.done(); err != nil {
					return err
				}
			}
		}
		return nil
	})
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
// finite.
func (p *product) class(i, j int) class { return p.classOf(i, j, 0, p.k) }

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
	zero := t.Scale(i, k) == 0
	switch {
	case classOf(v) != finite && zero:
		return float32(math.NaN())
	case classOf(v) != finite:
		return v
	case v == 0 || zero:
		return 0
	}
	return float32(math.Copysign(1, float64(v)))
}
