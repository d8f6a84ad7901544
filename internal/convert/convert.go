// Package convert has the kernels that convert float32 values to FP8 codes and
// back, that widen 16-bit floats, and that find the largest magnitude (amax), for
// each level of package cpu.
//
// A kernel serves the common case: saturating, all values finite. It says when a
// value was not, and the caller then encodes that part in plain Go, so that a kernel
// is one straight loop and every special rule stands once, in package fp8. Kernels
// take whole vectors, multiples of [Step].
//
// All levels compute the same. For ties toward zero a magnitude is made odd first, by which a
// tie comes before the tie, and nothing else changes its side. To nearest even, a number is added to a magnitude
// whose last place is that of the codes about it, or of the format's smallest
// subnormal: the processor then rounds. Toward zero and stochastically, the
// mantissa is shifted, farther for each binade below the smallest normal value;
// what is cut off, as 32 bits, is compared with 32 random ones.
package convert

// Encoding is what a kernel must know of a format and of how to round.
type Encoding struct {
	MinNormal uint32 // float32 bits of the smallest normal value
	Shift     uint32 // mantissa bits of float32 that the format drops
	MaxCode   uint32 // code of the largest finite value
	Normal    uint32 // code of the smallest normal value
	Sign      uint32 // the sign's bit of a code
	Magic     uint32 // bits of 2^Shift and, in the last 16, less what a sum has too much
	Divide    uint32 // 1 to divide by scales, 0 to multiply
	Mode      Mode
	Source    Source
	Zeros     Zeros
	Often     uint32 // 1 if many codes will be zero or saturated, for which a kernel then need not look

	// Ahead is how many bytes behind what is encoded lies what will be needed next, which
	// comes from memory while a kernel computes. It need not be there.
	Ahead uint32

	// For Stochastic: the random bits of element i of src are those of fp8's
	// stream with keys K0 and K1 at index Index+i, which must not exceed 32 bits.
	K0, K1, Index uint32
}

// Mode is how a kernel rounds.
type Mode uint32

const (
	NearestEven Mode = iota
	TowardZero
	Stochastic
	NearestTowardZero
	NearestEvenOfBF16 // of the nearest bfloat16, ties to even; only where HalvesAvailable
)

// Zeros is which sign zeros get. A value counts as one before it is scaled: where one of
// the last two rules matters, no value may become a zero by being scaled.
type Zeros uint32

const (
	ZerosSigned   Zeros = iota // that of their values
	ZerosUnsigned              // none
	ZerosPositive              // of values that are zero, none; codes that become zero keep theirs
	ZerosNegative              // of values that are zero, a sign; codes that become zero keep theirs
)

// Source is the type of the values that a kernel encodes.
type Source uint32

const (
	Float32 Source = iota
	BFloat16
	Float16
)

// Layout is where a kernel finds the scale of an element. Scales are without a
// sign bit.
type Layout int

const (
	One        Layout = iota // one scale for all
	PerStep                  // a scale for every 16 elements
	PerElement               // a scale for every element
)

// Limit is what the bits of a scaled magnitude must be below for a kernel to
// encode it: those of 2^100.
const Limit = (127 + 100) << 23

// Counts is what happened to the values that a kernel encoded.
type Counts struct {
	MaxScaled uint32 // largest bits of |x*scale|; from Limit on, nothing else here or in dst counts
	MaxBits   uint32 // largest bits of |x|
	MinBits   uint32 // smallest bits of nonzero |x|, less 1; all ones if there is none

	Saturated    uint32 // beyond MaxCode, of either sign
	SaturatedNeg uint32 // of those, x is negative
	BelowNormal  uint32 // codes below Normal, zeros included
	ZeroCodes    uint32
	Zeros        uint32 // x is zero
}

// Extremes are the largest bits of scales that are stored, and the largest and smallest of
// what values are multiplied or divided by. A sign makes bits large.
type Extremes struct{ Stored, Largest, Smallest uint32 }

// Decoding is what a kernel must know of a format and a scale to decode.
type Decoding struct {
	Bits   uint32  // of a code, the sign's first; bits above them are ignored
	Shift  uint32  // from a code's place to that of a float32's exponent and mantissa
	Mask   uint32  // the magnitude's bits after that shift
	Rebias float32 // the power of two that corrects the exponent
	Scale  float32 // of the block
	Max    uint32  // code of the largest finite magnitude; 7F if all are finite
	Lone   uint32  // a code that is not finite whatever its magnitude

	// Where a code's bits below the sign, moved to the top and right by HalfShift, are those
	// of a float16: the power of two that corrects its exponent. 0 where they are not.
	HalfRebias float32
	HalfShift  uint32

	Offset   uint32 // what a normal value's bits lack after the shift
	Smallest uint32 // bits of the smallest normal value

	// 1 if values need not stay in the caches; dst is then a multiple of 64 bytes.
	Stream uint32
}
