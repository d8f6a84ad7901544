//go:build !purego

package dots

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var multiply = kernels.New("dots.Multiply", kernels.At[kernel](cpu.NEON, multiplyNEON))

//go:noescape
func multiplyNEON(sums *float64, sumsStride int, x *float64, stride int, panel *float64, n, rows int)
