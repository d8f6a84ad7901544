//go:build purego || !amd64

package fouroversix

import "github.com/octavo-fp8/octavo/internal/kernels"

var rows = kernels.New[rowsFunc]("fouroversix.Rows")
