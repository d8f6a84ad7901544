//go:build !purego

package hadamard

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	rows    = kernels.New("hadamard.Rows", kernels.At[rowsFunc](cpu.NEON, rowsNEON))
	columns = kernels.New("hadamard.Columns", kernels.At(cpu.NEON, columnsKernel{columnsNEON, 4}))
)

//go:noescape
func rowsNEON(dst, src *float32, n int, j *job)

//go:noescape
func columnsNEON(dst, src *float32, dstStride, srcStride, n int, j *job)
