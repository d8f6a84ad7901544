// Package rounding rounds float32 to narrower formats and keeps float32: what package
// nn does with the operands of "fake quantization".
package rounding

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/race"
	"github.com/octavo-fp8/octavo/internal/random"
)

// Lattice is where the numbers of a format lie.
type Lattice struct {
	Mantissa  uint32 // bits
	MinNormal uint32 // float32 bits of the smallest normal number
	Max       float32
}

const (
	signBit      = 1 << 31
	infinityBits = 0x7F800000 // of a float32: all exponent bits

	// reciprocal less the bits of a power of two are those of its reciprocal.
	reciprocal = 254 << 23
)

// job is what a kernel must know. Its layout is known to the assembly.
type job struct {
	multiplier, stored float32
	largest            uint32 // bits of the largest number
	minNormal          uint32
	drop               uint32 // (23 - m) << 23, for m bits of mantissa
	mantissa           uint32 // m << 23: float(bits(2^e) - mantissa) is the step from 2^e on
	fraction           uint32 // float(fraction - bits(step)) is 2^32 / step
	index              uint64 // random.Mix of the seed, plus the index of src[0]
}

func newJob(l *Lattice, s fp8.Scale, seed, first uint64) job {
	return job{
		multiplier: s.Multiplier, stored: s.Stored,
		largest: math.Float32bits(l.Max), minNormal: l.MinNormal,
		drop: (23 - l.Mantissa) << 23, mantissa: l.Mantissa << 23, fraction: reciprocal + 32<<23,
		index: random.Mix(seed) + first,
	}
}

// The type of kernels, whose slices are not empty and of the same length. They keep no
// pointer.
type roundFunc func(dst, src []float32, j *job)

// longest is the number of elements that a kernel is given at a time: it cannot be
// interrupted.
const longest = 1 << 14

func run(o *kernels.Operation[roundFunc], dst, src []float32, work job) {
	dst = dst[:len(src)]
	race.Read(src)
	race.Write(dst)
	kernel, _ := o.For(cpu.Current())
	dst, src = kernels.NoEscapeSlice(dst), kernels.NoEscapeSlice(src)
	j := kernels.NoEscape(&work)
	for len(src) > 0 {
		n := min(len(src), longest)
		kernel(dst[:n], src[:n], j)
		dst, src, j.index = dst[n:], src[n:], j.index+uint64(n)
	}
}

// Nearest writes to dst each value of src times s.Multiplier, rounded to the nearest
// number, ties to even, times s.Stored; neither may be 0. What is beyond the largest number becomes
// that; NaN and infinities stay what they are. dst may be src.
func Nearest(dst, src []float32, l *Lattice, s fp8.Scale) {
	j := newJob(l, s, 0, 0)
	run(nearest, dst, src, j)
}

func nearestGeneric(dst, src []float32, j *job) {
	for i, x := range src {
		b := math.Float32bits(x * j.multiplier)
		magnitude := b &^ signBit
		if magnitude >= infinityBits {
			dst[i] = x
			continue
		}
		magnitude = min(magnitude, j.largest)
		// The last place of a float32 with this exponent is a step of the format, so that
		// adding one rounds as wanted.
		addend := math.Float32frombits(max(magnitude&infinityBits, j.minNormal) + j.drop)
		rounded := math.Float32frombits(magnitude) + addend - addend
		dst[i] = math.Float32frombits(math.Float32bits(rounded)|b&signBit) * j.stored
	}
}

// Stochastic is [Nearest] but for the direction: away from zero with the probability
// of the dropped fraction of a step, to within 2^-32, which 32 random bits decide: the
// upper half of random.Mix(random.Mix(seed) + index), where src[0] has the index first.
func Stochastic(dst, src []float32, l *Lattice, s fp8.Scale, seed, first uint64) {
	j := newJob(l, s, seed, first)
	run(stochastic, dst, src, j)
}

func stochasticGeneric(dst, src []float32, j *job) {
	for i, x := range src {
		b := math.Float32bits(x * j.multiplier)
		magnitude := b &^ signBit
		if magnitude >= infinityBits {
			dst[i] = x
			continue
		}
		magnitude = min(magnitude, j.largest)
		step := max(magnitude&infinityBits, j.minNormal) - j.mantissa
		// In units of 2^-32 steps, a fraction above the random number r carries when
		// 2^32 - 1 - r is added.
		fixed := int64(math.Float32frombits(magnitude) * math.Float32frombits(j.fraction-step))
		carry := int64(^random.Mix(j.index+uint64(i)) >> 32)
		rounded := float32((fixed+carry)>>32) * math.Float32frombits(step)
		dst[i] = math.Float32frombits(math.Float32bits(rounded)|b&signBit) * j.stored
	}
}

// NearestBF16 writes the BF16 nearest to each value of src to dst, which may be src.
// A NaN stays one, quiet and of the same sign.
func NearestBF16(dst, src []float32) {
	run(nearestBF16, dst, src, job{})
}

func nearestBF16Generic(dst, src []float32, _ *job) {
	for i, x := range src {
		dst[i] = fp8.BFloat16FromFloat32(x).Float32()
	}
}

// RandomBF16 is [NearestBF16] but for the direction, as in [Stochastic], to within
// 2^-16; NaN and infinities stay what they are.
func RandomBF16(dst, src []float32, seed, first uint64) {
	j := job{index: random.Mix(seed) + first}
	run(randomBF16, dst, src, j)
}

func randomBF16Generic(dst, src []float32, j *job) {
	for i, x := range src {
		if math.Float32bits(x)&infinityBits != infinityBits {
			x = random.BF16(x, random.Mix(j.index+uint64(i))).Float32()
		}
		dst[i] = x
	}
}
