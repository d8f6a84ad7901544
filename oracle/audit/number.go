package audit

import (
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/halves"
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

func widened[T gemm.Output](c []T) []float64 {
	v := make([]float64, len(c))
	for i, x := range c {
		v[i] = float64(halves.Value(x))
	}
	return v
}

// narrow rounds as many values as there are.
func narrow[T gemm.Output](dst []T, src []float32) {
	for i, v := range src {
		dst[i] = halves.Round[T](v)
	}
}
