package power

import (
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
)

// unitOf is the unit roundoff of a narrow type of C, and 0 for float32.
func unitOf[T gemm.Output]() float64 {
	if f := number.Of[T](); f != number.FP32 {
		return f.Epsilon() / 2
	}
	return 0
}

// cell returns the interval of numbers that are rounded to x, which is finite: its ends
// are ties.
func cell[T gemm.Output](x T) (lo, hi float64) {
	v := number.Float64(x)
	return (v + number.Float64(next(x, -1))) / 2, (v + number.Float64(next(x, 1))) / 2
}

// next returns the number of a narrow type above x or, for a negative direction, below.
func next[T gemm.Output](x T, direction int) T {
	var bits uint16
	switch v := any(x).(type) {
	case fp8.BFloat16:
		bits = uint16(v)
	case float16.Float16:
		bits = v.Bits()
	default:
		return x
	}
	negative, magnitude := bits>>15 == 1, bits&0x7FFF
	switch {
	case magnitude == 0:
		magnitude, negative = 1, direction < 0
	case negative == (direction < 0):
		magnitude++
	default:
		magnitude--
	}
	if negative {
		magnitude |= 0x8000
	}
	var y T
	switch y := any(&y).(type) {
	case *fp8.BFloat16:
		*y = fp8.BFloat16(magnitude)
	case *float16.Float16:
		*y = float16.Frombits(magnitude)
	}
	return y
}
