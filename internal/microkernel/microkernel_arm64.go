//go:build !purego

package microkernel

import "github.com/octavo-fp8/octavo/internal/cpu"

func kernelsFor(l cpu.Level) *Kernels {
	if l == cpu.NEON {
		return &neon
	}
	return nil
}

var neon = Kernels{MR: 4, NR: 8, Multiply: multiplyNEON}

//go:noescape
func multiplyNEON(t *Task)
