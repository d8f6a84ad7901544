package random

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
)

// BF16 rounds x up with the probability of the dropped fraction of a step, to within
// 2^-16, which the upper 16 of 64 random bits decide. x must be finite; the largest may
// become infinite.
func BF16(x float32, bits uint64) fp8.BFloat16 {
	return fp8.BFloat16((math.Float32bits(x) + uint32(bits>>48)) >> 16)
}
