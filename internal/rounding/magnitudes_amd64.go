//go:build !purego

package rounding

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var findExtremes = kernels.New("rounding.Magnitudes",
	kernels.At[extremesFunc](cpu.Generic, extremesGeneric),
	kernels.At[extremesFunc](cpu.AVX2, func(src []float32, e *extremes) {
		if n := len(src) &^ 15; n > 0 {
			var part extremes
			extremesAVX2(&src[0], n, &part)
			e.merge(&part)
			src = src[n:]
		}
		extremesGeneric(src, e)
	}))

//go:noescape
func extremesAVX2(src *float32, n int, e *extremes)
