package nn

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
)

const (
	signBit      = 1 << 31
	infinityBits = 0x7F800000 // of a float32: all exponent bits

	smallestNormal = 0x1p-126 // float32

	// reciprocal less the bits of a power of two are those of its reciprocal.
	reciprocal = 254 << 23
)

// nearest writes to dst each value of src times scale.Multiplier, rounded to the
// nearest number of the format, ties to even, times scale.Stored. What is beyond the
// largest number becomes that; NaN and infinities stay what they are.
func (g *lattice) nearest(dst, src []float32, scale fp8.Scale) {
	dst = dst[:len(src)]
	largest, minNormal, drop := math.Float32bits(g.max), g.minNormal, (23-g.mantissa)<<23
	for i, x := range src {
		b := math.Float32bits(x * scale.Multiplier)
		magnitude := b &^ signBit
		if magnitude >= infinityBits {
			dst[i] = x
			continue
		}
		magnitude = min(magnitude, largest)
		// The last place of a float32 with this exponent is a step of the format, so that
		// adding one rounds as wanted.
		addend := math.Float32frombits(max(magnitude&infinityBits, minNormal) + drop)
		rounded := math.Float32frombits(magnitude) + addend - addend
		dst[i] = math.Float32frombits(math.Float32bits(rounded)|b&signBit) * scale.Stored
	}
}

// stochastic is nearest but for the direction: away from zero with the probability of
// the dropped fraction of a step, to within 2^-32, which 32 random bits decide: the
// upper half of random.Mix(random.Mix(seed) + index), where src[0] has the index first.
func (g *lattice) stochastic(dst, src []float32, scale fp8.Scale, seed, first uint64) {
	dst = dst[:len(src)]
	largest, minNormal, key := math.Float32bits(g.max), g.minNormal, random.Mix(seed)
	for i, x := range src {
		b := math.Float32bits(x * scale.Multiplier)
		magnitude := b &^ signBit
		if magnitude >= infinityBits {
			dst[i] = x
			continue
		}
		magnitude = min(magnitude, largest)
		step := max(magnitude&infinityBits, minNormal) - g.mantissa<<23
		// In units of 2^-32 steps, a fraction above the random number r carries when
		// 2^32 - 1 - r is added.
		fixed := int64(math.Float32frombits(magnitude) * math.Float32frombits(reciprocal+32<<23-step))
		carry := int64(^random.Mix(key+first+uint64(i)) >> 32)
		rounded := float32((fixed+carry)>>32) * math.Float32frombits(step)
		dst[i] = math.Float32frombits(math.Float32bits(rounded)|b&signBit) * scale.Stored
	}
}

// nearestBF16 writes the BF16 nearest to each value of src to dst, which may be src.
func nearestBF16(dst, src []float32) {
	dst = dst[:len(src)]
	for i, x := range src {
		dst[i] = fp8.BFloat16FromFloat32(x).Float32()
	}
}

// randomBF16 is nearestBF16 but for the direction, as in stochastic, to within 2^-16.
func randomBF16(dst, src []float32, seed, first uint64) {
	dst = dst[:len(src)]
	key := random.Mix(seed)
	for i, x := range src {
		if math.Float32bits(x)&infinityBits == infinityBits {
			dst[i] = x
			continue
		}
		dst[i] = random.BF16(x, random.Mix(key+first+uint64(i))).Float32()
	}
}
