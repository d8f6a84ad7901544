//go:build !purego

package microkernel

import (
	arm "golang.org/x/sys/cpu"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var byLevel = register(kernels.At(cpu.NEON, &neon))

var dots = kernels.New[*Kernels]("microkernel.Dots")

var neon = Kernels{
	MR: 4, NR: 8, Direct: true,
	Multiply: multiplyNEON, MultiplyRounded: multiplyRoundedNEON,
	MultiplyCodes: multiplyCodesNEON, MultiplyCodesRow: codesRow(),
	DecodeFloat16: decodeFloat16NEON, Contains: containsNEON,
	Transpose: transposeNEON, TransposeCols: 16,
}

// codesRow returns the kernel for a row: the one with FMLAL, of ARMv8.2's FHM, if the
// processor has that.
func codesRow() func(*Task) {
	if arm.ARM64.HasASIMDFHM {
		return multiplyCodesRowFHM
	}
	return multiplyCodesRowNEON
}

//go:noescape
func multiplyNEON(t *Task)

//go:noescape
func multiplyRoundedNEON(t *Task)

//go:noescape
func multiplyCodesNEON(t *Task)

//go:noescape
func multiplyCodesRowNEON(t *Task)

//go:noescape
func multiplyCodesRowFHM(t *Task)

//go:noescape
func decodeFloat16NEON(dst *float32, codes *byte, n int, multiplier, mask uint64, ahead int)

//go:noescape
func containsNEON(codes *byte, n int, mask, value uint64) bool

//go:noescape
func transposeNEON(dst, src *byte, stride, rows, n int)

const fastDenormals = false // no kernel asks
