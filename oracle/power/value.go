package power

import (
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
)

// value returns the value of an element of C.
func value[T gemm.Output](x T) float64 {
	switch x := any(x).(type) {
	case fp8.BFloat16:
		return float64(x.Float32())
	case float16.Float16:
		return float64(x.Float32())
	case float32:
		return float64(x)
	}
	return 0
}

// narrowed rounds x to the type of C.
func narrowed[T gemm.Output](x float32) (y T) {
	switch y := any(&y).(type) {
	case *fp8.BFloat16:
		*y = fp8.BFloat16FromFloat32(x)
	case *float16.Float16:
		*y = float16.Fromfloat32(x)
	case *float32:
		*y = x
	}
	return y
}

// unitOf is the unit roundoff of a narrow type of C, and 0 for float32.
func unitOf[T gemm.Output]() float64 {
	switch any(*new(T)).(type) {
	case fp8.BFloat16:
		return 0x1p-8
	case float16.Float16:
		return 0x1p-11
	}
	return 0
}

// cell returns the interval of numbers that are rounded to x, which is finite: its ends
// are ties.
func cell[T gemm.Output](x T) (lo, hi float64) {
	v := value(x)
	return (v + value(next(x, -1))) / 2, (v + value(next(x, 1))) / 2
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

// finite reports whether x is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
