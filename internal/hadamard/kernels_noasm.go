//go:build purego || !(amd64 || arm64)

package hadamard

import "github.com/octavo-fp8/octavo/internal/kernels"

var (
	rows    = kernels.New[rowsFunc]("hadamard.Rows")
	columns = kernels.New[columnsKernel]("hadamard.Columns")
)
