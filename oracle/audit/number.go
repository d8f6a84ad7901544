package audit

import (
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle/fault"
)

// typeOf returns the type of C.
func typeOf[T gemm.Output]() fault.Type {
	switch any(*new(T)).(type) {
	case fp8.BFloat16:
		return fault.BFloat16
	case float16.Float16:
		return fault.Float16
	}
	return fault.Float32
}

// widen returns the value of an element of C.
func widen[T gemm.Output](x T) float32 {
	switch x := any(x).(type) {
	case fp8.BFloat16:
		return x.Float32()
	case float16.Float16:
		return x.Float32()
	case float32:
		return x
	}
	return 0
}

func widened[T gemm.Output](c []T) []float64 {
	v := make([]float64, len(c))
	for i, x := range c {
		v[i] = float64(widen(x))
	}
	return v
}

// narrow rounds as many values as there are.
func narrow[T gemm.Output](dst []T, src []float32) {
	for i, v := range src {
		if v != v {
			v = math.Float32frombits(0x7FC00000)
		}
		switch x := any(&dst[i]).(type) {
		case *fp8.BFloat16:
			*x = fp8.BFloat16FromFloat32(v)
		case *float16.Float16:
			*x = float16.Fromfloat32(v)
		case *float32:
			*x = v
		}
	}
}
