//go:build purego || !(amd64 || arm64)

package aligned

import "github.com/octavo-fp8/octavo/internal/kernels"

var multiply = kernels.New[kernel]("aligned.Multiply")
