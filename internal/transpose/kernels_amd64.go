//go:build !purego

package transpose

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var matrix = kernels.New("transpose.Matrix",
	kernels.At(cpu.AVX2, kernel{transposeAVX2, 8}),
	kernels.At(cpu.AVX512, kernel{transposeAVX512, widest}))

//go:noescape
func transposeAVX2(dst, src *float32, dstStride, srcStride, n int)

//go:noescape
func transposeAVX512(dst, src *float32, dstStride, srcStride, n int)
