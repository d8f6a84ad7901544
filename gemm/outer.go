package gemm

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/integer"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// checkAlpha makes sure that the product of every pair of outer scales is a float32 that
// results can be multiplied with: neither infinite nor, unless one of them is 0, 0. Where an
// operand is empty there is nothing but +0 to multiply, which 0 makes +0 again: an expert
// without tokens has the smallest scale that there is.
func checkAlpha(a, b *tensor.Tensor) error {
	if a.Outer.None() && b.Outer.None() {
		return nil
	}
	smallA, largeA := extremes(a)
	smallB, largeB := extremes(b)
	// Rounding keeps order, so that if any product is wrong, that of the extremes is.
	if alpha := largeA.factor * largeB.factor; math.IsInf(float64(alpha), 0) || math.IsInf(float64(max(largeA.factor, largeB.factor)), 0) {
		return alphaError(a, b, largeA, largeB, "too large for a float32")
	}
	if smallA.factor*smallB.factor == 0 && a.Len() > 0 && b.Len() > 0 {
		return alphaError(a, b, smallA, smallB, "0 in float32 though neither is")
	}
	return nil
}

func alphaError(a, b *tensor.Tensor, i, j outerScale, what string) error {
	return sentinel.Errorf(ErrOperands, "tensor %q and tensor %q: the product of outer scale %d, as a factor %v, and outer scale %d, %v, is %s",
		a.Name, b.Name, i.at, i.factor, j.at, j.factor, what)
}

// outerScale is one of a tensor's, as a factor.
type outerScale struct {
	at     int
	factor float32
}

// extremes returns the smallest outer scale of a tensor that is not 0, as a factor, and
// the largest. A tensor without any has 1, and one with nothing but zeros 1 for the
// smallest, which then makes no product 0.
func extremes(t *tensor.Tensor) (small, large outerScale) {
	small, large = outerScale{0, 1}, outerScale{0, 1}
	found := false
	for at := range t.Outer.Scales {
		f := t.Outer.Factor(at * max(t.Outer.Rows, 1))
		if f > 0 && (!found || f < small.factor) {
			small, found = outerScale{at, f}, true
		}
		if at == 0 || f > large.factor {
			large = outerScale{at, f}
		}
	}
	return small, large
}

// outer reports whether results are multiplied by outer scales.
func (p *product) outer() bool { return !p.a.outer.None() || !p.b.outer.None() }

// multiplyPanelOuter multiplies results of an area, a panel's columns, which lie where C
// has them.
func (s *scratch) multiplyPanelOuter(p *part, r area, c []float32) {
	s.outerA = grow(s.outerA, r.i1-r.i0)
	factors(s.outerA, p.a.outer, r.i0)
	factors(s.outerB[:], p.b.outer, r.j0)
	integer.MultiplyOuter(c, p.n, s.outerA, &s.outerB)
}

// factors writes the outer scales of row first and of those that follow, as factors.
func factors(dst []float32, o tensor.Outer, first int) {
	for i := range dst {
		if i > 0 && (o.Rows == 0 || (first+i)%o.Rows != 0) {
			dst[i] = dst[i-1]
			continue
		}
		dst[i] = o.Factor(first + i)
	}
}

// multiplyOuter multiplies sums, of row i and columns j and following, by the product of
// the outer scales of the row and of the column, rounded.
func (p *product) multiplyOuter(sums []float32, i, j int) {
	ga := p.a.outer.Factor(i)
	if g := p.b.outer; g.Rows == 0 {
		alpha := ga * g.Factor(0)
		for at, c := range sums {
			if c *= alpha; c != c {
				c = math.Float32frombits(canonicalBits)
			}
			sums[at] = c
		}
		return
	}
	for at := range sums {
		sums[at] *= ga * p.b.outer.Factor(j+at)
	}
	canonicalNaN(sums)
}
