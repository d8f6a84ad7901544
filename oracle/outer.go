package oracle

import (
	"math"
	"math/big"

	"github.com/octavo-fp8/octavo/tensor"
)

// outers are the outer scales of a product's operands.
type outers struct {
	a, b tensor.Outer
	none bool
}

func outersOf(a, b *tensor.Tensor) outers {
	return outers{a.Outer, b.Outer, a.Outer.None() && b.Outer.None()}
}

// factor is what the sum of element (i, j) is multiplied by, as an exact ratio: the
// product of the multipliers over that of the divisors.
type factor struct{ multiplier, divisor float64 }

func (o *outers) at(i, j int) factor {
	f := factor{1, 1}
	f.take(&o.a, i)
	f.take(&o.b, j)
	return f
}

// take takes in the outer scale of row i. Two of float32 have 48 bits.
func (f *factor) take(o *tensor.Outer, i int) {
	if o.Divide {
		f.divisor *= float64(o.At(i))
	} else {
		f.multiplier *= float64(o.At(i))
	}
}

// float64 returns f rounded to nearest.
func (f factor) float64() float64 { return f.multiplier / f.divisor }

// alpha is f as package gemm has it: each divisor's reciprocal is rounded to float32, and
// so is the product.
func (o *outers) alpha(i, j int) float32 { return o.a.Factor(i) * o.b.Factor(j) }

// roundings is how often a kernel rounds where it multiplies by the outer scales, one by
// one or by their product: once for each multiplier and twice for each divisor, of which
// it may take the reciprocal.
func (o *outers) roundings() (n int) {
	for _, x := range []*tensor.Outer{&o.a, &o.b} {
		if !x.None() {
			n++
			if x.Divide {
				n++
			}
		}
	}
	return n
}

// times is the class of a sum that is multiplied by f.
func (c class) times(f factor) class {
	if c != finite && f.multiplier == 0 {
		return nan
	}
	return c
}

// times multiplies by f.
func (t *twofold) times(f factor) {
	if f.multiplier != 1 {
		var product twofold
		product.addProduct(t.hi, f.multiplier)
		product.addProduct(t.lo, f.multiplier)
		product.lost += float64(t.lost * f.multiplier)
		*t = product
	}
	if f.divisor == 1 {
		return
	}
	quotient := t.hi / f.divisor
	rest := math.FMA(-quotient, f.divisor, t.hi) + t.lo // the first term is exact
	low := rest / f.divisor
	lost := t.lost / f.divisor
	if rest != 0 {
		lost += float64(math.Abs(low) * 0x1p-50)
	}
	*t = twofold{quotient, low, lost}
}

// times returns a·f + b, in 64 bits and what is below them as sticky.
func (a *accumulator) times(f factor, b *accumulator) unrounded {
	multiplier, up := integerOf(f.multiplier)
	divisor, down := integerOf(f.divisor)
	// (a·multiplier·2^(up-down) + b·divisor) / divisor, in units of the accumulator.
	sum, addend := a.integer(), b.integer()
	sum.Mul(sum, multiplier)
	addend.Mul(addend, divisor)
	exponent := accumulatorUnit
	if shift := up - down; shift >= 0 {
		sum.Lsh(sum, uint(shift))
	} else {
		addend.Lsh(addend, uint(-shift))
		exponent += shift
	}
	return quotient(sum.Add(sum, addend), divisor, exponent)
}

// quotient returns x/y·2^exponent.
func quotient(x, y *big.Int, exponent int) unrounded {
	n := unrounded{negative: x.Sign() < 0}
	if x.Sign() == 0 {
		return n
	}
	x = new(big.Int).Abs(x)
	const bits = 64
	if shift := y.BitLen() + bits - x.BitLen(); shift > 0 {
		x.Lsh(x, uint(shift))
		exponent -= shift
	}
	q, rest := x.QuoRem(x, y, new(big.Int))
	n.sticky = rest.Sign() != 0
	if extra := q.BitLen() - bits; extra > 0 {
		n.sticky = n.sticky || int(q.TrailingZeroBits()) < extra
		q.Rsh(q, uint(extra))
		exponent += extra
	}
	n.significand, n.exponent = q.Uint64(), exponent
	return n
}

// integerOf returns a positive x, or 0, as m·2^e.
func integerOf(x float64) (m *big.Int, e int) {
	fraction, e := math.Frexp(x)
	return big.NewInt(int64(math.Ldexp(fraction, 53))), e - 53
}

// integer returns the sum in units of its last place.
func (a *accumulator) integer() *big.Int {
	n := new(big.Int)
	for i := len(a) - 1; i >= 0; i-- {
		n.Lsh(n, 64)
		n.Or(n, new(big.Int).SetUint64(a[i]))
	}
	if a[len(a)-1]>>63 == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(64*len(a))))
	}
	return n
}
