package oracle

import (
	"math"
	"math/bits"

	"github.com/octavo-fp8/octavo/internal/aligned"
)

// fused is a sum of aligned terms, value·2^unit, before it is rounded. cut is the
// number of terms that lost something, each less than 2^unit.
type fused struct {
	value     int64
	unit, cut int
	special   class
}

// align returns t·2^(shift) cut toward zero, and 1 where that lost something.
func align(t int64, shift int) (aligned int64, cut int) {
	if shift >= 0 {
		return t << shift, 0
	}
	shift = min(-shift, 62)
	lost := int64(1)<<shift - 1
	aligned = (t + t>>63&lost) >> shift
	if aligned<<shift != t {
		cut = 1
	}
	return aligned, cut
}

// fuse adds the products of x and y, each with mantissa fraction bits in all and
// scale added to its exponent, and c: steps 1 and 2 of Model.
func fuse(x, y []element, f, mantissa, scale int, c addend) fused {
	if c.special != finite {
		return fused{special: classOfSum(x, y, c.special)}
	}
	// A product has mantissa+2 bits and its sign.
	places := aligned.Places{Left: max(f-mantissa, 0), Right: max(mantissa-f, 0), Least: c.exponent - scale}
	sum, cut, top := aligned.Sum(x, y, places, mantissa+2+places.Left)
	if top >= specialFrom {
		return fused{special: classOfSum(x, y, c.special)}
	}
	top += scale
	value, lost := align(c.significand, f-c.fraction+c.exponent-top)
	return fused{value: sum + value, unit: top - f, cut: cut + lost}
}

// classOfSum is the class of a sum with a term that is not finite.
func classOfSum(x, y []element, c class) class {
	for i, v := range x {
		c = c.plus(classOfProduct(numberOf(v), numberOf(y[i])))
	}
	return c
}

// result is what an instruction returns, and how far from the exact sum of its
// products and c it may be, in float64 rounded to nearest.
type result struct {
	bits uint64
	err  float64
}

// round is step 3 of Model.
func (m *Model) round(s fused, l layout) result {
	if s.special != finite {
		return result{m.special(s.special, l), 0}
	}
	if l == layout32 && m.Unit != MatrixCore {
		if r, ok := s.towardZero(m.Keep); ok {
			return r
		}
	}
	n := fixed(s.value, s.unit)
	var b uint64
	switch {
	case l == layout16 || m.Unit == MatrixCore:
		b = l.nearest(n)
	default:
		b = l.towardZero(n, m.Keep)
	}
	if b&^l.sign() == 0 {
		b = 0
	}
	// Both numbers are exact in float64, and so is their difference.
	unit := power2(s.unit)
	err := math.Abs(float64(float64(s.value)*unit) - valueOf(b, l))
	return result{b, float64(float64(s.cut)*unit) + err}
}

// towardZero is round to a float32 of keep fraction bits, if that is a normal number: then
// what is lost are the bits below.
func (s *fused) towardZero(keep int) (r result, ok bool) {
	magnitude := uint64(max(s.value, -s.value))
	top := bits.Len64(magnitude) - 1
	exponent := top + s.unit
	if magnitude == 0 || exponent < layout32.minExponent() || exponent > layout32.bias {
		return result{}, false
	}
	kept, lost := magnitude, uint64(0)
	if shift := top - keep; shift > 0 {
		kept >>= shift
		lost = magnitude - kept<<shift
	} else {
		kept <<= -shift
	}
	r.bits = kept<<(layout32.fraction-keep) + uint64(exponent-layout32.minExponent())<<layout32.fraction
	if s.value < 0 {
		r.bits |= 1 << 31
	}
	unit := power2(s.unit)
	r.err = float64(float64(s.cut)*unit) + float64(float64(lost)*unit)
	return r, true
}

// valueOf is the value of the bits of a float32 or a float16.
func valueOf(b uint64, l layout) float64 {
	if l == layout32 {
		return float64(math.Float32frombits(uint32(b)))
	}
	c := newAddend(b, l)
	switch c.special {
	case positiveInf, negativeInf:
		return math.Inf(1 - 2*int(c.special-positiveInf))
	case nan:
		return math.NaN()
	}
	return float64(c.significand) * power2(c.exponent-c.fraction)
}

// power2 returns 2^e for e of a normal float64.
func power2(e int) float64 { return math.Float64frombits(uint64(e+1023) << 52) }

// step is a fused step with c from, and to, the bits of l.
func (m *Model) step(x, y []element, mantissa, scale int, c result, l layout) result {
	r := m.round(fuse(x, y, m.F, mantissa, scale, newAddend(c.bits, l)), l)
	r.err += c.err
	return r
}

// instruction returns c plus up to K products; fewer are as many as K, the others
// zero. scale is the sum of the exponents of both scales.
func (m *Model) instruction(x, y []element, mantissa, scale int, c result, l layout) result {
	switch m.Unit {
	case Emulated:
		return m.emulated(x, y, mantissa, c, l)
	case MatrixCore:
		s := matrixCore(x, y, m.F, mantissa, newAddend(c.bits, l))
		r := m.round(s, l)
		r.err += c.err
		return r
	}
	for lo := 0; lo < len(x); lo += m.L {
		hi := min(lo+m.L, len(x))
		c = m.step(x[lo:hi], y[lo:hi], mantissa, scale, c, l)
	}
	return c
}

// emulated is an instruction of an Emulated model.
func (m *Model) emulated(x, y []element, mantissa int, c result, l layout) result {
	var first, second [2][32]element
	n, o := 0, 0
	for i := range x {
		if m.First>>(i&31)&1 == 1 {
			first[0][n], first[1][n] = x[i], y[i]
			n++
		} else {
			second[0][o], second[1][o] = x[i], y[i]
			o++
		}
	}
	d := m.step(first[0][:n], first[1][:n], mantissa, 0, result{}, l)
	d = m.step(second[0][:o], second[1][:o], mantissa, 0, d, l)
	u, v := newAddend(d.bits, l), newAddend(c.bits, l)
	if special := u.special.plus(v.special); special != finite {
		return result{m.special(special, l), d.err + c.err}
	}
	sum := valueOf(d.bits, l) + valueOf(c.bits, l)
	b := roundSum(sum, l)
	err := math.Abs(sum-valueOf(b, l)) + math.Abs(sum)*0x1p-53
	return result{b, d.err + c.err + err}
}

// roundSum rounds the sum, in float64, of two numbers of l to l. The first
// rounding, to 53 bits, does no harm: 53 is more than twice 24, and two.
func roundSum(sum float64, l layout) uint64 {
	if l == layout32 {
		return uint64(math.Float32bits(float32(sum)))
	}
	b := math.Float64bits(sum)
	e := int(b >> 52 & 0x7FF)
	if e == 0 {
		return b >> 63 * l.sign() // a zero: numbers of l are much larger than float64's least
	}
	return l.nearest(number{b>>63 == 1, b&(1<<52-1) | 1<<52, e - 1075, false})
}

// matrixCore is a step of CDNA3 up to its rounding.
func matrixCore(x, y []element, f, mantissa int, c addend) fused {
	var even, odd [2][16]element
	n, o := 0, 0
	for i := range x {
		if i%2 == 0 {
			even[0][n], even[1][n] = x[i], y[i]
			n++
		} else {
			odd[0][o], odd[1][o] = x[i], y[i]
			o++
		}
	}
	none := addend{exponent: zeroExponent}
	s0 := fuse(even[0][:n], even[1][:n], f, mantissa, 0, none)
	s1 := fuse(odd[0][:o], odd[1][:o], f, mantissa, 0, none)
	if special := s0.special.plus(s1.special).plus(c.special); special != finite {
		return fused{special: special}
	}
	// The halves meet at f fraction bits, rounding down.
	unit := max(s0.unit, s1.unit)
	sum := fused{unit: unit, cut: s0.cut + s1.cut}
	for _, s := range []fused{s0, s1} {
		sum.addFloor(s.value, s.unit-unit)
	}
	// The sum then has 31 fraction bits below the larger exponent, c f of them.
	const wide, range25 = 31, 25
	e := unit + f
	top := max(e, c.exponent)
	total := fused{unit: top - wide, cut: sum.cut << max(wide-f+e-top, 0)}
	total.addFloor(sum.value, wide-f+e-top)
	part := fused{}
	if c.exponent >= top-range25 {
		part.addFloor(c.significand, f-c.fraction+c.exponent-top)
		part.cut <<= wide - f
	} else if c.significand != 0 {
		total.cut += 1 << (wide - range25) // |c| < 2^(top-range25)
	}
	total.value += part.value << (wide - f)
	total.cut += part.cut
	return total
}

// addFloor adds t·2^shift rounded down.
func (s *fused) addFloor(t int64, shift int) {
	if shift >= 0 {
		s.value += t << shift
		return
	}
	shift = min(-shift, 62)
	s.value += t >> shift
	if t>>shift<<shift != t {
		s.cut++
	}
}
