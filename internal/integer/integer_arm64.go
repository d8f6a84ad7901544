//go:build !purego

package integer

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var byLevel = register(kernels.At(cpu.NEON, &dotProd).With(cpu.DotProd))

// dotProd has SDOT, which not all processors with NEON have.
var dotProd = Kernels{MR: 4, Largest: 1 << 15, Multiply: multiplyDotProd, MultiplyNibbles: multiplyNibblesDotProd}

//go:noescape
func multiplyDotProd(t *Task)

//go:noescape
func multiplyNibblesDotProd(t *Task)
