package tensor

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/enum"
)

// ScaleFormat is how the scales of a tensor's blocks are kept in files, in packed
// operands and on the machines that compute with them. Tensor.Scales holds their
// values whatever it is. The zero value is Float32Scales.
type ScaleFormat uint8

const (
	Float32Scales ScaleFormat = iota // four bytes; NaN and infinities are damage
	E8M0Scales                       // powers of two, of OCP's MX formats: see [fp8.E8M0]
	UE4M3Scales                      // E4M3 without a sign, of NVFP4
)

var scaleFormats = enum.Enum[ScaleFormat]{
	Type: "ScaleFormat", What: "format of scales", Names: []string{"float32", "E8M0", "UE4M3"}, Err: ErrScale, Prefix: "tensor",
}

// String returns the text of f, such as "E8M0".
func (f ScaleFormat) String() string                   { return scaleFormats.String(f) }
func (f ScaleFormat) MarshalText() ([]byte, error)     { return scaleFormats.MarshalText(f) }
func (f *ScaleFormat) UnmarshalText(text []byte) error { return scaleFormats.UnmarshalText(f, text) }

// ParseScaleFormat returns the format of scales of the given name, in any case.
func ParseScaleFormat(name string) (ScaleFormat, error) { return scaleFormats.Parse(name) }

// Valid reports whether f is one of the formats of scales of this package.
func (f ScaleFormat) Valid() bool { return scaleFormats.Valid(f) }

// Encoded reports whether scales are kept as one byte each, in which NaN is a scale
// like others: the one that makes a block NaN.
func (f ScaleFormat) Encoded() bool { return f != Float32Scales && f.Valid() }

// Holds reports whether a scale of this format can be s. No format holds an infinity
// or a negative number, -0 included; float32 holds no NaN and E8M0 no zero.
func (f ScaleFormat) Holds(s float32) bool {
	switch f {
	case Float32Scales:
		return math.Float32bits(s) < math.Float32bits(float32(math.Inf(1)))
	case E8M0Scales:
		_, ok := fp8.E8M0FromFloat32(s)
		return ok
	case UE4M3Scales:
		// Normal values have three bits of mantissa, subnormal ones are multiples of 2^-9.
		const minNormal, largest = 0x3C800000, 0x43E00000 // bits of 2^-6 and of 448
		switch bits := math.Float32bits(s); {
		case bits < minNormal:
			n := s * (1 << 9)
			return n == float32(int(n))
		case bits <= largest:
			return bits&(1<<20-1) == 0
		}
		return s != s
	}
	return false
}

// wants says what Holds asks for.
func (f ScaleFormat) wants() string {
	switch f {
	case E8M0Scales:
		return "a power of two from 2^-127 to 2^127, or NaN"
	case UE4M3Scales:
		return "a value of E4M3 that is not negative, or NaN"
	}
	return "a finite number that is not negative"
}
