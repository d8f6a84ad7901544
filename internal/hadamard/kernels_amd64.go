//go:build !purego

package hadamard

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	rows = kernels.New("hadamard.Rows",
		kernels.At[rowsFunc[float32]](cpu.AVX2, rowsAVX2),
		kernels.At[rowsFunc[float32]](cpu.AVX512, rowsAVX512))
	rowsBF16 = kernels.New("hadamard.RowsBF16",
		kernels.At[rowsFunc[uint16]](cpu.AVX2, rowsBF16AVX2),
		kernels.At[rowsFunc[uint16]](cpu.AVX512, rowsBF16AVX512))
	columns = kernels.New("hadamard.Columns",
		kernels.At(cpu.AVX2, columnsKernel[float32]{columnsAVX2, 8}),
		kernels.At(cpu.AVX512, columnsKernel[float32]{columnsAVX512, 1}))
	columnsBF16 = kernels.New("hadamard.ColumnsBF16",
		kernels.At(cpu.AVX2, columnsKernel[uint16]{columnsBF16AVX2, 8}),
		kernels.At(cpu.AVX512, columnsKernel[uint16]{columnsBF16AVX512, 1}))
)

//go:noescape
func rowsAVX2(dst, src *float32, n int, j *job)

//go:noescape
func rowsBF16AVX2(dst, src *uint16, n int, j *job)

//go:noescape
func rowsAVX512(dst, src *float32, n int, j *job)

//go:noescape
func rowsBF16AVX512(dst, src *uint16, n int, j *job)

//go:noescape
func columnsAVX2(dst, src *float32, dstStride, srcStride, n int, j *job)

//go:noescape
func columnsBF16AVX2(dst, src *uint16, dstStride, srcStride, n int, j *job)

//go:noescape
func columnsAVX512(dst, src *float32, dstStride, srcStride, n int, j *job)

//go:noescape
func columnsBF16AVX512(dst, src *uint16, dstStride, srcStride, n int, j *job)
