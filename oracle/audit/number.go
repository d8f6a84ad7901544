package audit

import (
	"github.com/octavo-fp8/octavo/gemm"
	floating "github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle/fault"
)

// typeOf returns the type of C.
func typeOf[T gemm.Output]() fault.Type {
	return map[floating.Format]fault.Type{floating.BF16: fault.BFloat16, floating.FP16: fault.Float16}[floating.Of[T]()]
}

func widened[T gemm.Output](c []T) []float64 {
	v := make([]float64, len(c))
	for i, x := range c {
		v[i] = floating.Float64(x)
	}
	return v
}

// narrow rounds as many values as there are.
func narrow[T gemm.Output](dst []T, src []float32) {
	for i, v := range src {
		dst[i] = floating.From[T](floating.Canonical(v))
	}
}
