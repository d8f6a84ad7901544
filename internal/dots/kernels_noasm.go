//go:build purego || !(amd64 || arm64)

package dots

import "github.com/octavo-fp8/octavo/internal/kernels"

var multiply = kernels.New[kernel]("dots.Multiply")
