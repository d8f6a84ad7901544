//go:build !purego

package hadamard

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var (
	rows = kernels.New("hadamard.Rows",
		kernels.At[rowsFunc](cpu.AVX2, rowsAVX2),
		kernels.At[rowsFunc](cpu.AVX512, rowsAVX512))
	columns = kernels.New("hadamard.Columns",
		kernels.At(cpu.AVX2, columnsKernel{columnsAVX2, 8}),
		kernels.At(cpu.AVX512, columnsKernel{columnsAVX512, 1}))
)

//go:noescape
func rowsAVX2(dst, src *float32, n int, j *job)

//go:noescape
func rowsAVX512(dst, src *float32, n int, j *job)

//go:noescape
func columnsAVX2(dst, src *float32, dstStride, srcStride, n int, j *job)

//go:noescape
func columnsAVX512(dst, src *float32, dstStride, srcStride, n int, j *job)
