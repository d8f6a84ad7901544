package oracle

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/number"
)

// rounded is a step of a SingleRounding model.
func (s *strands) rounded(m *Model, lo, hi int) {
	for j, r := range s.results {
		s.results[j] = s.once(m, lo, hi, j, r)
	}
}

// once adds the products [lo, hi) of column j to what came before.
func (s *strands) once(m *Model, lo, hi, j int, before result) result {
	given := float64(math.Float32frombits(uint32(before.bits)))
	ofC, err := classOf(float32(given)), before.err
	c, first := 0.0, 0.0
	if ofC == finite {
		c = m.single(given) // which a result is already
	}
	if !m.Last {
		first = c
	}
	value, of := s.products(lo, hi, j, first)
	exact := of.plus(ofC)
	if of == finite {
		sum := m.single(value)
		if sum != value {
			err += math.Abs(value-sum) + float64(math.Abs(value)*0x1p-52)
		}
		if m.Last {
			d := m.single(sum + c)
			err += sumError(sum, c, float32(d))
			sum = d
		}
		of = classOf(float32(sum))
		if value = sum; of.plus(ofC) == finite {
			return result{uint64(math.Float32bits(float32(value))), err}
		}
	}
	if of = of.plus(ofC); of == exact {
		err = before.err // whatever overflowed
	}
	return result{m.special(of, layout32), err}
}

// products is the sum of the products [lo, hi) of column j and of a finite c, rounded to
// odd, or its class.
func (s *strands) products(lo, hi, j int, c float64) (float64, class) {
	value, lost, unit := c, 0.0, s.scales[j]-s.mantissa
	at := lo*s.stride + j
	for _, x := range s.x[lo:hi] {
		y := s.y[at]
		at += s.stride
		e := int(x.Exponent) + int(y.Exponent)
		if e >= specialFrom {
			return 0, s.classOfSum(lo, hi, j)
		}
		var rest float64
		value, rest = number.TwoSum(value, float64(float64(int32(x.Significand)*int32(y.Significand))*power2(max(e+unit, -1000))))
		lost += math.Abs(rest)
	}
	if lost == 0 { // as nearly always
		return value + 0, finite
	}
	sum := twofold{hi: c}
	for k := lo; k < hi; k++ {
		x, y := s.x[k], s.y[k*s.stride+j]
		if p := int32(x.Significand) * int32(y.Significand); p != 0 {
			sum.add(float64(float64(p) * power2(int(x.Exponent)+int(y.Exponent)+unit)))
		}
	}
	if value, sure := sum.odd(); sure {
		return value, finite
	}
	return s.longSum(lo, hi, j, float32(c)).odd(), finite
}

// longSum is the sum of finite products and c, however far apart they are.
func (s *strands) longSum(lo, hi, j int, c float32) unrounded {
	var sum accumulator
	sum.addFloat32(c)
	for k := lo; k < hi; k++ {
		x, y := s.x[k], s.y[k*s.stride+j]
		if n := fixed(int64(x.Significand)*int64(y.Significand), 0); n.significand != 0 {
			sum.add(0, n.significand, int(x.Exponent)+int(y.Exponent)+s.scales[j]-s.mantissa, n.negative)
		}
	}
	return sum.number()
}

// odd returns n, whose significand has 64 bits, rounded to odd.
func (n unrounded) odd() float64 {
	const below = 64 - 53
	kept := n.significand >> below
	if n.sticky || n.significand<<(64-below) != 0 {
		kept |= 1
	}
	value := math.Ldexp(float64(kept), n.exponent+below)
	if n.negative {
		return -value
	}
	return value
}

// single rounds a number that is exact, or rounded to odd, to a float32. Where the model
// flushes, one that stays below the least normal number in 24 bits becomes 0.
func (m *Model) single(x float64) float64 {
	const up = 64
	if m.Flush && math.Abs(x) < 0x1p-125 && math.Abs(float64(float32(float64(x*power2(up))))) < 0x1p-126*(1<<up) {
		return 0
	}
	return float64(float32(x))
}
