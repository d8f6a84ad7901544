//go:build !purego

package integer

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var byLevel = register(kernels.At(cpu.AVX512, &vnni).With(cpu.VNNI))

// vnni has AVX512_VNNI, which not all processors of level AVX512 have.
var vnni = Kernels{
	MR: 8, Unsigned: true, Largest: 1 << 15,
	Multiply: multiplyVNNI, MultiplyNibbles: multiplyNibblesVNNI,
}

//go:noescape
func multiplyVNNI(t *Task)

//go:noescape
func multiplyNibblesVNNI(t *Task)
