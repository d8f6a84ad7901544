package scaling

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

// limits is what a scale depends on besides amax.
type limits struct {
	max      float32 // largest finite value of the format
	mantissa int     // its bits of mantissa, of the largest values
	source   float32 // largest finite value of the source type
	epsilon  float32 // a smaller amax is raised to it, where a profile has that

	level level // of the outer scale, where there is one
}

// arithmetic is how an amax becomes a scale.
type arithmetic func(amax float32, l limits) fp8.Scale

func multiplyBy(m float32) fp8.Scale { return fp8.Scale{Stored: 1 / m, Multiplier: m} }

// storeAndMultiply multiplies by the reciprocal of what is stored. That of infinity is 0,
// by which fp8 divides instead: which comes to the same.
func storeAndMultiply(stored float32) fp8.Scale {
	return fp8.Scale{Stored: stored, Multiplier: 1 / stored}
}

func teCurrent(amax float32, l limits) fp8.Scale {
	l.source = math.MaxFloat32
	return teBlock(amax, l)
}

// teBlock is compute_scale_from_amax of TransformerEngine's recipe_common.cuh.
func teBlock(amax float32, l limits) fp8.Scale {
	if amax < l.epsilon {
		amax = l.epsilon
	}
	if amax == 0 || !number.IsFinite(amax) {
		return multiplyBy(1)
	}
	m := l.max / amax
	if !number.IsFinite(m) {
		m = l.source
	}
	return multiplyBy(m)
}

// floorPow2 rounds the multiplier of another arithmetic down to a power of two.
func floorPow2(scale arithmetic) arithmetic {
	return func(amax float32, l limits) fp8.Scale { return floored(scale(amax, l)) }
}

// leastMultiplier is 2^-127. The power of two below has a reciprocal that is infinite; a
// finite amax leads there in MXINT8 alone, which none of these libraries has, and its
// scale is the largest power of two instead.
const leastMultiplier = 0x1p-127

func floored(s fp8.Scale) fp8.Scale {
	m := math.Float32frombits(math.Float32bits(s.Multiplier) & 0xFF800000)
	return multiplyBy(max(m, leastMultiplier)) // of a subnormal multiplier, m is 0
}

// torchAO is amax_to_scale of torchao's float8_utils.py, which divides in
// float64. An infinite amax makes the multiplier 0, and multiplying by 0 is then
// what dividing by the stored infinity is.
func torchAO(amax float32, l limits) fp8.Scale {
	const epsilon = 1e-12
	return multiplyBy(float32(float64(l.max) / atLeast(float64(amax), epsilon)))
}

// torchAOPow2 is _round_scale_down_to_power_of_2 of torchao's float8_utils.py,
// exp2(floor(log2(m))) of a float32 m. That of an infinite amax remains 0.
func torchAOPow2(amax float32, l limits) fp8.Scale {
	m := rounding.Exp2FloorLog2(torchAO(amax, l).Multiplier)
	if 0 < m && m < leastMultiplier {
		m = leastMultiplier
	}
	return multiplyBy(m)
}

func deepGEMMScale(amax float32, l limits) float32 { return atLeast(amax, 1e-4) / l.max }

func deepGEMM(amax float32, l limits) fp8.Scale { return storeAndMultiply(deepGEMMScale(amax, l)) }

// deepGEMMUE8M0 is ceil_to_ue8m0 of DeepGEMM's utils/math.py.
func deepGEMMUE8M0(amax float32, l limits) fp8.Scale {
	b := math.Float32bits(deepGEMMScale(amax, l)) &^ (1 << 31)
	exponent := b >> 23
	if b&0x7FFFFF != 0 {
		exponent++
	}
	return storeAndMultiply(math.Float32frombits(min(max(exponent, 1), 254) << 23))
}

func deepSeek(amax float32, l limits) fp8.Scale {
	return fp8.Scale{Stored: deepGEMMScale(amax, l)}
}

// scaleDeepSeekUE8M0 stores 2^ceil(log2 s), with an exact logarithm, and at most 2^127.
func scaleDeepSeekUE8M0(amax float32, l limits) fp8.Scale {
	s := deepGEMMScale(amax, l)
	if number.IsFinite(s) {
		fraction, exponent := math.Frexp(float64(s))
		if fraction == 0.5 {
			exponent--
		}
		s = float32(math.Ldexp(1, min(exponent, 127)))
	}
	return fp8.Scale{Stored: s}
}

func mtfp8(amax float32, l limits) fp8.Scale {
	return storeAndMultiply(float32(atLeast(amax, 1e-30) * float32(1/l.max)))
}

// atLeast is max(x, least) but for the bits of a NaN: what the built-in function
// makes of them depends on the processor.
func atLeast[T float32 | float64](x, least T) T {
	if x < least {
		return least
	}
	return x
}
