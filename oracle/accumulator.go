package oracle

import (
	"math"
	"math/bits"
)

// accumulator holds a sum exactly: a fixed-point number in two's complement, of
// 768 bits from 2^-384 up, least significant word first (Kulisch, "Computer
// Arithmetic and Validity", 2008).
//
// The least unit of code·code·scale·scale is that of two E5M2FNUZ subnormals
// under the least float32 scales, 2^-34 · 2^-298 = 2^-332; the largest magnitude
// of a sum of 2^63 products is below 2^63 · 2^32 · 2^256 = 2^351. Float32 values
// that are added fit as well.
type accumulator [12]uint64

const accumulatorUnit = -384

// add adds (hi·2^64 + lo)·2^e, or subtracts it.
func (a *accumulator) add(hi, lo uint64, e int, negative bool) {
	position := e - accumulatorUnit
	word, shift := position>>6, position&63
	part := [3]uint64{lo << shift, hi<<shift | lo>>(64-shift), hi >> (64 - shift)}
	var carry uint64
	if negative {
		for i, p := range part {
			a[word+i], carry = bits.Sub64(a[word+i], p, carry)
		}
		for i := word + 3; carry != 0 && i < len(a); i++ {
			a[i], carry = bits.Sub64(a[i], 0, carry)
		}
		return
	}
	for i, p := range part {
		a[word+i], carry = bits.Add64(a[word+i], p, carry)
	}
	for i := word + 3; carry != 0 && i < len(a); i++ {
		a[i], carry = bits.Add64(a[i], 0, carry)
	}
}

// addFloat32 adds a finite x.
func (a *accumulator) addFloat32(x float32) {
	m, e := split32(x)
	n := fixed(m, e)
	a.add(0, n.significand, e, n.negative)
}

// addScaled adds p·2^unit·sa·sb for finite scales that are not negative. |p| must
// be below 2^80.
func (a *accumulator) addScaled(p int128, unit int, sa, sb float32) {
	negative := p.hi < 0
	if negative {
		p = p.negated()
	}
	ma, ea := split32(sa)
	mb, eb := split32(sb)
	m := uint64(ma * mb)
	hi, lo := bits.Mul64(p.lo, m)
	a.add(hi+uint64(p.hi)*m, lo, unit+ea+eb, negative)
}

// number returns the sum in 64 bits and what is below them as sticky.
func (a *accumulator) number() unrounded {
	var n unrounded
	magnitude := *a
	if n.negative = a[len(a)-1]>>63 == 1; n.negative {
		carry := uint64(0)
		for i := range magnitude {
			magnitude[i], carry = bits.Sub64(0, magnitude[i], carry)
		}
	}
	top := len(magnitude) - 1
	for top >= 0 && magnitude[top] == 0 {
		top--
	}
	if top < 0 {
		return unrounded{}
	}
	zeros := bits.LeadingZeros64(magnitude[top])
	n.significand = magnitude[top] << zeros
	n.exponent = accumulatorUnit + 64*top - zeros
	for i := range top {
		rest := magnitude[i]
		if i == top-1 {
			n.significand |= rest >> (64 - zeros)
			rest <<= zeros
		}
		n.sticky = n.sticky || rest != 0
	}
	return n
}

// float64 returns the sum rounded to nearest.
func (a *accumulator) float64() float64 { return math.Float64frombits(layout64.nearest(a.number())) }

// int128 is an integer in two's complement.
type int128 struct {
	hi int64
	lo uint64
}

// join returns hi·2^16 + lo.
func join(hi, lo int64) int128 {
	sum, carry := bits.Add64(uint64(hi)<<splitBits, uint64(lo), 0)
	return int128{hi>>(64-splitBits) + lo>>63 + int64(carry), sum}
}

func (x int128) negated() int128 {
	lo, borrow := bits.Sub64(0, x.lo, 0)
	return int128{-x.hi - int64(borrow), lo}
}
