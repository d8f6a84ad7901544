//go:build !purego

package microkernel

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var byLevel = register(kernels.At(cpu.NEON, &neon))

var neon = Kernels{MR: 4, NR: 8, Multiply: multiplyNEON}

//go:noescape
func multiplyNEON(t *Task)
