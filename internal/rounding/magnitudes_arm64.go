//go:build !purego

package rounding

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var findExtremes = kernels.New("rounding.Magnitudes",
	kernels.At[extremesFunc](cpu.Generic, extremesGeneric),
	kernels.At[extremesFunc](cpu.NEON, func(src []float32, e *extremes) {
		n := len(src) &^ 7
		extremesNEON(&src[0], n, e)
		extremesGeneric(src[n:], e)
	}))

//go:noescape
func extremesNEON(src *float32, n int, e *extremes)
