// Package number is the table of floating-point formats that values are rounded to, and
// what the Go types of such values have in common, with arithmetic that the standard library
// lacks. Enumerations of formats elsewhere name subsets of the table.
package number

import (
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/rounding"
)

// Format is a binary floating-point format of a sign, exponent bits and mantissa bits. With
// E exponent bits the bias is 2^(E-1)-1. Formats of up to 4 exponent bits use every code as a
// number, but for the one NaN of E4M3; wider ones keep the largest exponent for infinities
// and NaN, as IEEE 754 does.
type Format struct{ Exponent, Mantissa int }

// Formats that have names of their own.
var (
	FP64 = Format{11, 52} // IEEE 754 binary64
	FP32 = Format{8, 23}  // IEEE 754 binary32
	TF32 = Format{8, 10}  // a float32 whose low 13 bits are zero
	BF16 = Format{8, 7}   // bfloat16
	FP16 = Format{5, 10}  // IEEE 754 binary16
	E5M2 = Format{5, 2}   // OCP FP8
	E4M3 = Format{4, 3}   // OCP FP8
)

// Parse returns the format of a name such as "E4M3", and whether there is one: those from
// E1M1 to E5M10, and E8M7, which is BF16.
func Parse(name string) (Format, bool) {
	var f Format
	n, err := fmt.Sscanf(name, "E%dM%d", &f.Exponent, &f.Mantissa)
	known := f == BF16 || f.Exponent >= 1 && f.Exponent <= 5 && f.Mantissa >= 1 && f.Mantissa <= 10
	return f, n == 2 && err == nil && known && name == f.String()
}

// String returns such as "E4M3".
func (f Format) String() string { return fmt.Sprintf("E%dM%d", f.Exponent, f.Mantissa) }

// Bytes is the size of a value in memory.
func (f Format) Bytes() int { return (1 + f.Exponent + f.Mantissa + 7) / 8 }

// Bias is that of the exponent.
func (f Format) Bias() int { return 1<<(f.Exponent-1) - 1 }

// Max is the largest finite number.
func (f Format) Max() float64 {
	top := 1<<f.Exponent - 1 - f.Bias() // exponent of the largest number
	unused := 0                         // codes of the largest exponent that are no numbers
	switch {
	case f.Exponent >= 5:
		top--
	case f == E4M3:
		unused = 1
	}
	return math.Ldexp(math.Ldexp(2, f.Mantissa)-1-float64(unused), top-f.Mantissa)
}

// Epsilon is the distance from 1 to the next larger number.
func (f Format) Epsilon() float64 { return math.Ldexp(1, -f.Mantissa) }

// Lattice says where the numbers of a format lie whose exponents float32 has.
func (f Format) Lattice() rounding.Lattice {
	return rounding.Lattice{
		Mantissa: uint32(f.Mantissa), MinNormal: uint32(127+1-f.Bias()) << 23, Max: float32(f.Max()),
	}
}

// Has reports whether x is a number of the format, an infinity or a NaN.
func (f Format) Has(x float32) bool { return !IsFinite(x) || f.Round(x) == x }

// Round returns x rounded to nearest, ties to even. What is beyond the largest number
// becomes an infinity, or that number in formats of fewer than 16 bits, which saturate
// infinities as well. A NaN stays one.
func (f Format) Round(x float32) float32 {
	switch f {
	case FP32, FP64:
		return x
	case FP16:
		return float16.Fromfloat32(x).Float32()
	case BF16:
		return fp8.BFloat16FromFloat32(x).Float32()
	case TF32:
		return RoundMantissa(x, f.Mantissa)
	}
	if x != x {
		return x
	}
	limit, lattice := float32(f.Max()), f.Lattice()
	values := []float32{max(min(x, limit), -limit)}
	rounding.Nearest(values, values, &lattice, fp8.Scale{Stored: 1, Multiplier: 1})
	return values[0]
}

// RoundMantissa rounds x to so many bits of mantissa, fewer than 23, with the exponents of
// float32: to nearest, ties to even. A NaN stays what it is.
func RoundMantissa(x float32, mantissa int) float32 {
	if x != x {
		return x
	}
	drop := FP32.Mantissa - mantissa
	bits := math.Float32bits(x)
	bits += 1<<(drop-1) - 1 + bits>>drop&1
	return math.Float32frombits(bits >> drop << drop)
}

// IsFinite reports whether x is neither NaN nor infinite.
func IsFinite[T ~float32 | ~float64](x T) bool { return math.Abs(float64(x)) <= math.MaxFloat64 }

// TwoSum returns x + y rounded to nearest, and the rest, exactly (Knuth).
func TwoSum(x, y float64) (sum, rest float64) {
	sum = x + y
	t := sum - x
	return sum, (x - (sum - t)) + (y - t)
}

// LeastCommonMultiple is that of two positive numbers.
func LeastCommonMultiple(a, b int) int {
	x, y := a, b
	for y != 0 {
		x, y = y, x%y
	}
	return a / x * b
}

// Canonical returns x, or 7FC00000 for every NaN: hardware differs in the bits of one.
func Canonical(x float32) float32 {
	if x != x {
		return math.Float32frombits(canonicalNaN)
	}
	return x
}

const canonicalNaN = 0x7FC00000

// Of returns the format of T.
func Of[T fp8.Float]() Format {
	switch any(*new(T)).(type) {
	case float64:
		return FP64
	case float16.Float16:
		return FP16
	case fp8.BFloat16:
		return BF16
	}
	return FP32
}

// Float64 returns the value of x, exactly.
func Float64[T fp8.Float](x T) float64 {
	if x, ok := any(x).(float64); ok {
		return x
	}
	return float64(Float32(x))
}

// Float32 returns the value of x, rounded where T is float64.
func Float32[T fp8.Float](x T) float32 {
	switch x := any(x).(type) {
	case float32:
		return x
	case fp8.BFloat16:
		return x.Float32()
	case float16.Float16:
		return x.Float32()
	case float64:
		return float32(x)
	}
	return 0
}

// From rounds x to T: to nearest, ties to even.
func From[T fp8.Float](x float32) (y T) {
	switch y := any(&y).(type) {
	case *float32:
		*y = x
	case *fp8.BFloat16:
		*y = fp8.BFloat16FromFloat32(x)
	case *float16.Float16:
		*y = float16.Fromfloat32(x)
	case *float64:
		*y = float64(x)
	}
	return y
}

// Narrow rounds values to dst[:len(src)] as [From] does.
func Narrow[T fp8.Float](dst []T, src []float32) {
	switch dst := any(dst).(type) {
	case []float32:
		copy(dst, src)
	case []fp8.BFloat16:
		for i, x := range src {
			dst[i] = fp8.BFloat16FromFloat32(x)
		}
	case []float16.Float16:
		for i, x := range src {
			dst[i] = float16.Fromfloat32(x)
		}
	case []float64:
		for i, x := range src {
			dst[i] = float64(x)
		}
	}
}

// PowerDown returns the largest power of two that is at most s, with its sign; zeros,
// infinities and NaN stay.
func PowerDown(s float32) float32 {
	fraction, exponent := math.Frexp(float64(s))
	if fraction == 0 || fraction != fraction || math.IsInf(fraction, 0) {
		return s
	}
	return float32(math.Ldexp(math.Copysign(0.5, fraction), exponent))
}

// PowerUp returns the least power of two that is at least s in magnitude, which may be an
// infinity.
func PowerUp(s float32) float32 {
	if down := PowerDown(s); down != s {
		return 2 * down
	}
	return s
}
