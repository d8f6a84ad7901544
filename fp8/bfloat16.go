package fp8

import "math"

// BFloat16 is the upper half of a float32: 1 sign, 8 exponent and 7 mantissa
// bits. Every FP8 value is a BFloat16 exactly.
type BFloat16 uint16

// BFloat16FromFloat32 rounds x to the nearest BFloat16, ties to even. Overflow
// gives an infinity; a NaN stays one, quiet and of the same sign.
func BFloat16FromFloat32(x float32) BFloat16 {
	b := math.Float32bits(x)
	if x != x {
		return BFloat16(b>>16 | 0x40)
	}
	return BFloat16((b + 0x7FFF + b>>16&1) >> 16)
}

// Float32 returns the value of b, exactly.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }
