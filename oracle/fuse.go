package oracle

import (
	"math"

	"github.com/x448/float16"
)

// fused is a sum of aligned terms, value·2^unit, before it is rounded. cut is the
// number of terms that lost something, each less than 2^unit.
type fused struct {
	value     int64
	unit, cut int
	special   class
}

// align returns t·2^shift cut toward zero, and 1 where that lost something. Signs and
// shifts are as good as random: it has no branches.
func align(t int64, shift int) (aligned int64, cut int) {
	t <<= uint(max(shift, 0)) & 63
	right := uint(min(max(-shift, 0), 62)) & 63
	below := int64(1)<<right - 1
	return (t + t>>63&below) >> right, int((t&below + below) >> right)
}

// cut returns x·2^shift cut toward zero, and 1 where that lost something.
func cut(x float64, shift int) (value int64, lost int) {
	x = float64(x * power2(shift))
	value = int64(x)
	if float64(value) != x {
		lost = 1
	}
	return value, lost
}

// plus adds c.
func (s fused) plus(c addend) fused {
	s.special = s.special.plus(c.special)
	if s.special == finite {
		value, lost := cut(c.value, -s.unit)
		s.value += value
		s.cut += lost
	}
	return s
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
	n := fixed(s.value, s.unit)
	var b uint64
	switch {
	case l == layout16 || m.Unit == matrixCore:
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

// valueOf is the value of the bits of a float32 or a float16.
func valueOf(b uint64, l layout) float64 {
	if l == layout32 {
		return float64(math.Float32frombits(uint32(b)))
	}
	return float64(float16.Frombits(uint16(b)).Float32())
}

// power2 returns 2^e for e of a normal float64.
func power2(e int) float64 { return math.Float64frombits(uint64(e+1023) << 52) }

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
	return l.nearest(unrounded{b>>63 == 1, b&(1<<52-1) | 1<<52, e - 1075, false})
}

// addMatrixCore adds c to the sums of products of even and of odd offset.
func addMatrixCore(s0, s1 fused, f int, c addend) fused {
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
		scaled := float64(c.value * power2(f-top))
		part.value = int64(math.Floor(scaled))
		if float64(part.value) != scaled {
			part.cut = 1 << (wide - f)
		}
	} else if c.value != 0 {
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
