//go:build !purego

package dots

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var multiply = kernels.New("dots.Multiply",
	kernels.At[kernel](cpu.AVX2, multiplyAVX2), kernels.At[kernel](cpu.AVX512, multiplyAVX512))

//go:noescape
func multiplyAVX2(sums *float64, sumsStride int, x *float64, stride int, panel *float64, n, rows int)

//go:noescape
func multiplyAVX512(sums *float64, sumsStride int, x *float64, stride int, panel *float64, n, rows int)
