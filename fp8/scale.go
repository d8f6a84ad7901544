package fp8

import "math"

// Scale is how the values of a block reach the range of the format and come
// back: a value x is encoded as x*Multiplier, or where that is 0 as x/Divisor, or
// where that is 0 too as x/Stored, and a code c stands for c*Stored. Each operation
// is one rounding to float32 (float64 for float64 values). The zero Scale leaves
// values as they are.
//
// Several fields are needed because libraries differ, to the bit, in whether they
// divide by the stored scale, multiply by its rounded reciprocal, or store the
// rounded reciprocal of what they multiplied by. With a scale above that of the block,
// as in NVFP4, what is stored is only a part of what they divide by.
type Scale struct {
	Stored     float32 // dequantization scale
	Multiplier float32
	Divisor    float32
}

// FactorScale returns the Scale that stores one number and multiplies values by another, or
// divides them by it. Dividing by infinity is multiplying by 0, which a Scale cannot say,
// and the other way round.
func FactorScale(stored, factor float32, divide bool) Scale {
	switch {
	case divide && factor == 0:
		return Scale{Stored: stored, Multiplier: float32(math.Inf(1))}
	case factor == 0:
		return Scale{Stored: stored, Divisor: float32(math.Inf(1))}
	case divide:
		return Scale{Stored: stored, Divisor: factor}
	}
	return Scale{Stored: stored, Multiplier: factor}
}

// divisor is what values are divided by where nothing multiplies them.
func (s Scale) divisor() float32 {
	if s.Divisor != 0 {
		return s.Divisor
	}
	return s.Stored
}

// isOne reports whether s is the zero Scale or has the same effect.
func (s Scale) isOne() bool { return s == Scale{} || s.Multiplier == 1 }

// float32 returns x scaled; finite overflow gives the largest float32. A NaN
// stays as it is, and a new one is positive: hardware differs in the sign of
// both.
func (s Scale) float32(x float32) float32 {
	if x != x {
		return x
	}
	var y float32
	if s.Multiplier != 0 {
		y = x * s.Multiplier
	} else {
		y = x / s.divisor()
	}
	switch {
	case y != y:
		return math.Float32frombits(positiveNaN)
	case math.IsInf(float64(y), 0) && !math.IsInf(float64(x), 0):
		return float32(math.Copysign(math.MaxFloat32, float64(y)))
	}
	return y
}

// float64 is float32 for float64.
func (s Scale) float64(x float64) float64 {
	if x != x {
		return x
	}
	var y float64
	if s.Multiplier != 0 {
		y = x * float64(s.Multiplier)
	} else {
		y = x / float64(s.divisor())
	}
	switch {
	case y != y:
		return math.Copysign(y, 1)
	case math.IsInf(y, 0) && !math.IsInf(x, 0):
		return math.Copysign(math.MaxFloat64, y)
	}
	return y
}

// stored is the factor by which a code's value is multiplied.
func (s Scale) stored() float64 {
	if s == (Scale{}) {
		return 1
	}
	return float64(s.Stored)
}
