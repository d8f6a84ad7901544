package fp8

import "math"

// Policy is what an encoder does where formats leave a choice. The zero value
// rounds to nearest even, saturates finite overflow and infinities, and keeps
// the sign of a NaN. Policies are comparable.
type Policy struct {
	Overflow Overflow
	Inf      Inf
	NaN      NaN
	Rounding Rounding
	Seed     uint64 // of stochastic rounding; ignored by the others
}

// Overflow is what becomes of a finite value that rounding with an unlimited
// exponent would carry past the largest finite code. It holds for every
// rounding: OCP defines overflow for nearest even only.
type Overflow uint8

const (
	OverflowSaturate  Overflow = iota // the largest finite value
	OverflowNonFinite                 // Inf where the format has one, otherwise NaN
)

// Inf is what becomes of an infinity.
type Inf uint8

const (
	InfSaturate  Inf = iota // the largest finite value
	InfPropagate            // Inf where the format has one, otherwise NaN
)

// NaN is what becomes of the sign of a NaN. The payload is not kept. The FNUZ
// formats have but one NaN and are not affected.
type NaN uint8

const (
	NaNKeepSign  NaN = iota // FF for a negative NaN, 7F for a positive one
	NaNCanonical            // 7F for all
)

// Rounding is how a value between two codes is rounded.
type Rounding uint8

const (
	// NearestEven rounds to the nearest code, a tie to the even one.
	NearestEven Rounding = iota
	// TowardZero drops what does not fit.
	TowardZero
	// Stochastic rounds away from zero with a probability equal to the dropped
	// fraction of a step, to within 2^-32: when the first 32 bits of that
	// fraction exceed the 32 random bits that belong to (Policy.Seed, index).
	Stochastic
)

// Scale is how the values of a block reach the range of the format and come
// back: a value x is encoded as x*Multiplier, or as x/Stored where Multiplier
// is 0, and a code c stands for c*Stored. Either operation is one rounding to
// float32 (float64 for float64 values). The zero Scale leaves values as they
// are.
//
// Two fields are needed because libraries differ, to the bit, in whether they
// divide by the stored scale, multiply by its rounded reciprocal, or store the
// rounded reciprocal of what they multiplied by.
type Scale struct {
	Stored     float32 // dequantization scale
	Multiplier float32
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
		y = x / s.Stored
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
		y = x / float64(s.Stored)
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
