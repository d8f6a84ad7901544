package oracle

import (
	"math"
	"math/bits"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
)

// layout is an IEEE 754 binary format.
type layout struct{ fraction, bias int }

var (
	layout16  = layoutFor(number.FP16)
	layoutB16 = layoutFor(number.BF16)
	layout32  = layoutFor(number.FP32)
	layout64  = layoutFor(number.FP64)
)

func layoutFor(f number.Format) layout { return layout{f.Mantissa, f.Bias()} }

func (l layout) minExponent() int { return 1 - l.bias }
func (l layout) infinity() uint64 { return uint64(2*l.bias+1) << l.fraction }
func (l layout) sign() uint64     { return uint64(l.bias+1) << l.fraction << 1 }

// exponent returns the exponent of a number's bits, that of a subnormal the least.
func (l layout) exponent(b uint64) int {
	return max(int(b&(l.sign()-1)>>l.fraction), 1) - l.bias
}

// unrounded is a magnitude and its sign: significand·2^exponent, plus a positive
// rest smaller than one unit of the significand where sticky is set, which asks
// for a significand of 64 bits.
type unrounded struct {
	negative    bool
	significand uint64
	exponent    int
	sticky      bool
}

// fixed returns s·2^q.
func fixed(s int64, q int) unrounded {
	if s < 0 {
		return unrounded{true, -uint64(s), q, false}
	}
	return unrounded{false, uint64(s), q, false}
}

// nearest returns the bits of n rounded once to the nearest value, ties to even;
// overflow gives an infinity and exact zero +0.
func (l layout) nearest(n unrounded) uint64 {
	kept, dropped, field := l.split(n, l.fraction)
	const half = 1 << 63
	if dropped > half || dropped == half && (n.sticky || kept&1 == 1) {
		kept++
	}
	return l.assemble(n, kept, field)
}

// towardZero returns the bits of n cut to a number of fraction bits, at most
// l's; overflow gives an infinity, as tensor cores do, and exact zero +0.
func (l layout) towardZero(n unrounded, fraction int) uint64 {
	kept, _, field := l.split(n, fraction)
	return l.assemble(n, kept<<(l.fraction-fraction), field)
}

// split cuts a significand: what is kept, with its leading bit, what drops out
// as 64 bits after the binary point (inexact only below a set sticky bit), and
// how many binades above the smallest normal one n is.
func (l layout) split(n unrounded, fraction int) (kept, dropped uint64, field int) {
	if n.significand == 0 {
		return 0, 0, 0
	}
	zeros := bits.LeadingZeros64(n.significand)
	s, top := n.significand<<zeros, n.exponent-zeros+63
	shift := 63 - fraction
	if below := l.minExponent() - top; below > 0 {
		shift += below
	} else {
		field = -below
	}
	switch {
	case shift < 64:
		return s >> shift, s << (64 - shift), field
	case shift == 64:
		return 0, s, field
	}
	return 0, 1, field // less than half of the last place
}

// assemble adds sign and exponent: a significand with its leading bit carries
// into the exponent by itself.
func (l layout) assemble(n unrounded, kept uint64, field int) uint64 {
	if n.significand == 0 {
		return 0
	}
	b := min(l.infinity(), kept+uint64(field)<<l.fraction)
	if n.negative {
		b |= l.sign()
	}
	return b
}

// split32 returns a finite x as m·2^e, |m| < 2^24.
func split32(x float32) (m int64, e int) {
	b := math.Float32bits(x)
	m, e = int64(b&0x7FFFFF), int(b>>23&0xFF)
	if e > 0 {
		m |= 1 << 23
		e--
	}
	if b>>31 == 1 {
		m = -m
	}
	return m, e - 149
}

// layoutOf returns the layout of T.
func layoutOf[T gemm.Output]() layout { return layoutFor(number.Of[T]()) }

// fromBits returns the T of the given bits.
func fromBits[T gemm.Output](b uint64) (x T) {
	switch x := any(&x).(type) {
	case *float32:
		*x = math.Float32frombits(uint32(b))
	case *fp8.BFloat16:
		*x = fp8.BFloat16(b)
	case *float16.Float16:
		*x = float16.Frombits(uint16(b))
	}
	return x
}

// bitsOf is the inverse of fromBits.
func bitsOf[T gemm.Output](x T) uint64 {
	switch x := any(x).(type) {
	case float32:
		return uint64(math.Float32bits(x))
	case fp8.BFloat16:
		return uint64(x)
	case float16.Float16:
		return uint64(x.Bits())
	}
	return 0
}

// narrow32 rounds x to T, ties to even; a NaN becomes the canonical one.
func narrow32[T gemm.Output](x float32) T {
	l := layoutOf[T]()
	if c := classOf(x); c != finite {
		return fromBits[T](c.bits(l))
	}
	m, e := split32(x)
	b := l.nearest(fixed(m, e))
	if m == 0 && math.Signbit(float64(x)) {
		b = l.sign()
	}
	return fromBits[T](b)
}

// class is what a value is apart from a finite number.
type class uint8

const (
	finite class = iota
	positiveInf
	negativeInf
	nan
)

func classOf(x float32) class {
	switch b := math.Float32bits(x); {
	case b&0x7FFFFFFF > 0x7F800000:
		return nan
	case b == 0x7F800000:
		return positiveInf
	case b == 0xFF800000:
		return negativeInf
	}
	return finite
}

// plus is the class of a sum.
func (c class) plus(d class) class {
	if c == positiveInf && d == negativeInf || c == negativeInf && d == positiveInf {
		return nan
	}
	return max(c, d)
}

// classOfProduct is the class of x·y, for values of which one may be 0.
func classOfProduct(x, y float32) class {
	cx, cy := classOf(x), classOf(y)
	switch {
	case cx == finite && cy == finite:
		return finite
	case cx == nan || cy == nan || x == 0 || y == 0:
		return nan
	case math.Signbit(float64(x)) == math.Signbit(float64(y)):
		return positiveInf
	}
	return negativeInf
}

// bits returns the bits of a class that is not finite; a NaN is the canonical
// one, quiet and positive without a payload.
func (c class) bits(l layout) uint64 {
	switch c {
	case positiveInf:
		return l.infinity()
	case negativeInf:
		return l.infinity() | l.sign()
	}
	return l.infinity() | 1<<(l.fraction-1)
}
