//go:build !purego

package hadamard

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	rows        = kernels.New("hadamard.Rows", kernels.At[rowsFunc[float32]](cpu.NEON, rowsNEON))
	rowsBF16    = kernels.New("hadamard.RowsBF16", kernels.At[rowsFunc[uint16]](cpu.NEON, rowsBF16NEON))
	columns     = kernels.New("hadamard.Columns", kernels.At(cpu.NEON, columnsKernel[float32]{columnsNEON, 4}))
	columnsBF16 = kernels.New("hadamard.ColumnsBF16", kernels.At(cpu.NEON, columnsKernel[uint16]{columnsBF16NEON, 4}))
)

//go:noescape
func rowsNEON(dst, src *float32, n int, j *job)

//go:noescape
func rowsBF16NEON(dst, src *uint16, n int, j *job)

//go:noescape
func columnsNEON(dst, src *float32, dstStride, srcStride, n int, j *job)

//go:noescape
func columnsBF16NEON(dst, src *uint16, dstStride, srcStride, n int, j *job)
