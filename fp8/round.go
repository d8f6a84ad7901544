package fp8

import "math"

// encoder is a format, a policy and a scale prepared for a slice.
type encoder struct {
	*layout
	table  *[256]float32
	policy Policy
	scale  Scale
	scaled bool // scale changes values
	broken bool // scale is NaN or infinite, and with it every value
	random stream

	// For nearest even from float32. A result below the smallest normal value
	// is found by adding a number whose last place is the smallest subnormal;
	// one above by adding half a step to the bits, which carries into the
	// exponent by itself.
	minNormal uint32 // its float32 bits
	addend    float32
	shift     uint
	rebias    uint32
}

func newEncoder(f Format, p Policy, s Scale, first uint64) encoder {
	l := &layouts[f]
	e := encoder{layout: l, table: &decodeTables[f], policy: p, scale: s, scaled: !s.isOne()}
	e.broken = math.IsNaN(s.stored()) || math.IsInf(s.stored(), 0)
	if p.Rounding == Stochastic {
		e.random = newStream(p.Seed, first)
	}
	e.minNormal = uint32(127+1-l.bias) << 23
	e.addend = math.Float32frombits(uint32(127+1-l.bias-l.mantissa+23) << 23)
	e.shift = uint(23 - l.mantissa)
	e.rebias = uint32(127-l.bias) << l.mantissa
	return e
}

// encode32 returns the code of x, the element of the given index. saturated
// says that x is finite and too large for the format.
func (e *encoder) encode32(x float32, index uint64) (code uint8, saturated bool) {
	b := math.Float32bits(x)
	sign, magnitude := uint8(b>>24)&0x80, b&0x7FFFFFFF
	if magnitude >= 0x7F800000 {
		return e.special(sign, magnitude > 0x7F800000), false
	}
	var c uint32
	if e.policy.Rounding == NearestEven {
		c = e.nearest32(magnitude)
	} else if magnitude >= 1<<23 { // a subnormal is below what Stochastic resolves
		c = e.round(int(magnitude>>23)-127, uint64(magnitude&0x7FFFFF|1<<23), 23, index)
	}
	return e.finish(sign, c)
}

// encode64 is encode32 for float64.
func (e *encoder) encode64(x float64, index uint64) (code uint8, saturated bool) {
	b := math.Float64bits(x)
	sign, magnitude := uint8(b>>56)&0x80, b&(1<<63-1)
	if magnitude >= 0x7FF<<52 {
		return e.special(sign, magnitude > 0x7FF<<52), false
	}
	var c uint32
	if magnitude >= 1<<52 { // a subnormal is below what Stochastic resolves
		c = e.round(int(magnitude>>52)-1023, magnitude&(1<<52-1)|1<<52, 52, index)
	}
	return e.finish(sign, c)
}

// nearest32 rounds a finite magnitude to nearest even, with an unlimited
// exponent.
func (e *encoder) nearest32(magnitude uint32) uint32 {
	if magnitude < e.minNormal {
		return math.Float32bits(math.Float32frombits(magnitude)+e.addend) - math.Float32bits(e.addend)
	}
	return (magnitude+1<<(e.shift-1)-1+magnitude>>e.shift&1)>>e.shift - e.rebias
}

// round rounds significand * 2^(exponent-width), whose leading bit stands at
// position width, with an unlimited exponent.
func (e *encoder) round(exponent int, significand uint64, width int, index uint64) uint32 {
	smallest := 1 - e.bias
	shift := width - e.mantissa
	above := 0 // binades above the smallest normal one
	if exponent < smallest {
		shift += smallest - exponent
	} else {
		above = exponent - smallest
	}
	// What does not fit, as the 64 bits after the binary point. Those that drop
	// out of fraction belong to values far below half the smallest subnormal.
	var kept, fraction uint64
	if shift < 64 {
		kept, fraction = significand>>shift, significand<<(64-shift)
	} else {
		fraction = significand >> (shift - 64)
	}
	if e.roundsUp(kept, fraction, index) {
		kept++
	}
	return uint32(kept + uint64(above)<<e.mantissa)
}

func (e *encoder) roundsUp(kept, fraction, index uint64) bool {
	const half = 1 << 63
	switch e.policy.Rounding {
	case NearestEven:
		return fraction > half || fraction == half && kept&1 == 1
	case Stochastic:
		return uint32(fraction>>32) > e.random.at(index)
	}
	return false
}

// finish applies the range of the format to a rounded magnitude.
func (e *encoder) finish(sign uint8, c uint32) (code uint8, saturated bool) {
	if c > uint32(e.max) {
		if e.policy.Overflow == OverflowSaturate {
			return sign | e.max, true
		}
		return sign | e.overflow, true
	}
	if c == 0 && e.fnuz {
		return 0, false
	}
	return sign | uint8(c), false
}

// special encodes an infinity or a NaN.
func (e *encoder) special(sign uint8, nan bool) uint8 {
	switch {
	case !nan && e.policy.Inf == InfSaturate:
		return sign | e.max
	case !nan:
		return sign | e.overflow
	case e.policy.NaN == NaNCanonical:
		return e.nan
	}
	return sign | e.nan
}
