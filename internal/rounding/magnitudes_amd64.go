//go:build !purego

package rounding

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var findExtremes = kernels.New("rounding.Magnitudes",
	kernels.At[extremesFunc](cpu.Generic, extremesGeneric),
	kernels.At[extremesFunc](cpu.AVX2, func(src []float32, e *extremes) {
		n := len(src) &^ 15
		extremesAVX2(&src[0], n, e)
		extremesGeneric(src[n:], e)
	}))

//go:noescape
func extremesAVX2(src *float32, n int, e *extremes)
