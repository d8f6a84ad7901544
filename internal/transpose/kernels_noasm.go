//go:build purego || !(amd64 || arm64)

package transpose

import "github.com/octavo-fp8/octavo/internal/kernels"

var matrix = kernels.New[kernel]("transpose.Matrix")
