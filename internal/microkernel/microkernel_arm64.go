//go:build !purego

package microkernel

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var byLevel = register(kernels.At(cpu.NEON, &neon))

var neon = Kernels{
	MR: 4, NR: 8, Multiply: multiplyNEON,
	MultiplyCodes: multiplyCodesNEON, MultiplyCodesRow: multiplyCodesRowNEON, CodesRows: 4,
	DecodeFloat16: decodeFloat16NEON, Contains: containsNEON,
}

//go:noescape
func multiplyNEON(t *Task)

//go:noescape
func multiplyCodesNEON(t *Task)

//go:noescape
func multiplyCodesRowNEON(t *Task)

//go:noescape
func decodeFloat16NEON(dst *float32, codes *byte, n int, multiplier, mask uint64)

//go:noescape
func containsNEON(codes *byte, n int, mask, value uint64) bool
