package nn

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

const (
	infinityBits   = 0x7F800000 // of a float32: all exponent bits
	smallestNormal = 0x1p-126   // float32
)

// nearest writes to dst each value of src times scale.Multiplier, rounded to the
// nearest number of the format, ties to even, times scale.Stored. What is beyond the
// largest number becomes that; NaN and infinities stay what they are.
func (g *lattice) nearest(dst, src []float32, scale fp8.Scale) {
	rounding.Nearest(dst, src, (*rounding.Lattice)(g), rounding.Scale{Multiplier: scale.Multiplier, Stored: scale.Stored})
}

// stochastic is nearest but for the direction: away from zero with the probability of
// the dropped fraction of a step, to within 2^-32, which 32 random bits decide: the
// upper half of random.Mix(random.Mix(seed) + index), where src[0] has the index first.
func (g *lattice) stochastic(dst, src []float32, scale fp8.Scale, seed, first uint64) {
	rounding.Stochastic(dst, src, (*rounding.Lattice)(g), rounding.Scale{Multiplier: scale.Multiplier, Stored: scale.Stored}, seed, first)
}
