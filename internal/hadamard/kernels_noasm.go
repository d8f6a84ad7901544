//go:build purego || !(amd64 || arm64)

package hadamard

import "github.com/octavo-fp8/octavo/internal/kernels"

var (
	rows        = kernels.New[rowsFunc[float32]]("hadamard.Rows")
	rowsBF16    = kernels.New[rowsFunc[uint16]]("hadamard.RowsBF16")
	columns     = kernels.New[columnsKernel[float32]]("hadamard.Columns")
	columnsBF16 = kernels.New[columnsKernel[uint16]]("hadamard.ColumnsBF16")
)
