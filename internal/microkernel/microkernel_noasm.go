//go:build purego || !(amd64 || arm64)

package microkernel

import "github.com/octavo-fp8/octavo/internal/kernels"

var byLevel = register()

var dots = kernels.New[*Kernels]("microkernel.Dots")

const fastDenormals = false // no kernel asks
