//go:build purego || !amd64

package amx

import "github.com/octavo-fp8/octavo/internal/kernels"

var (
	multiply       = kernels.New[multiplyFunc]("amx.Multiply")
	packRows       = kernels.New[packRowsFunc]("amx.PackRows")
	packColumns    = kernels.New[packColumnsFunc]("amx.PackColumns")
	packTransposed = kernels.New[packTransposedFunc]("amx.PackTransposed")
	copyRows       = kernels.New[copyRowsFunc]("amx.CopyRows")
)
