//go:build !purego

package transpose

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var matrix = kernels.New("transpose.Matrix", kernels.At(cpu.NEON, kernel{transposeNEON, 4}))

//go:noescape
func transposeNEON(dst, src *float32, dstStride, srcStride, n int)
