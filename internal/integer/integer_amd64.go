//go:build !purego

package integer

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

var byLevel = register(
	kernels.At(cpu.AVX2, &avx2),
	kernels.At(cpu.AVX2, &avxVNNI).With(cpu.AVXVNNI),
	kernels.At(cpu.AVX512, &avx512),
	kernels.At(cpu.AVX512, &vnni).With(cpu.VNNI),
	kernels.At(cpu.AMX, &amx).With(cpu.AMXInt8),
)

// vnni has AVX512_VNNI, which not all processors of level AVX512 have.
var vnni = Kernels{
	MR: 6, Unsigned: true, Largest: 1 << 15,
	Multiply: multiplyVNNI, MultiplyNibbles: multiplyNibblesVNNI,
}

//go:noescape
func multiplyVNNI(t *Task)

//go:noescape
func multiplyNibblesVNNI(t *Task)

// largestOfBytes is what one product may be for VPMADDUBSW, of which four must fit 16 bits,
// in which they are added: two by the instruction, which would saturate, and two quads.
const largestOfBytes = 1<<15/4 - 1

var avx512 = Kernels{MR: 8, Unsigned: true, Largest: largestOfBytes, Multiply: multiplyAVX512, MultiplyNibbles: multiplyNibblesAVX2}

func multiplyAVX512(t *Task) {
	if t.Quads <= t.Run {
		addNarrowAVX512(t)
	} else {
		addWideAVX512(t)
	}
}

// addNarrowAVX512 is for blocks whose sums of two products in a quad fit 16 bits.
//
//go:noescape
func addNarrowAVX512(t *Task)

//go:noescape
func addWideAVX512(t *Task)

var avx2 = Kernels{MR: 6, Unsigned: true, Largest: largestOfBytes, Multiply: multiplyAVX2, MultiplyNibbles: multiplyNibblesAVX2}

func multiplyAVX2(t *Task) {
	if t.Quads <= t.Run {
		addNarrowAVX2(t)
	} else {
		addWideAVX2(t)
	}
}

// addNarrowAVX2 is for blocks whose sums of two products in a quad fit 16 bits.
//
//go:noescape
func addNarrowAVX2(t *Task)

//go:noescape
func addWideAVX2(t *Task)

//go:noescape
func multiplyNibblesAVX2(t *Task)

// avxVNNI has AVX_VNNI, which processors with VNNI and without AVX-512 have.
var avxVNNI = Kernels{MR: 6, Unsigned: true, Largest: 1 << 15, Multiply: multiplyAVXVNNI, MultiplyNibbles: multiplyNibblesAVXVNNI}

//go:noescape
func multiplyAVXVNNI(t *Task)

//go:noescape
func multiplyNibblesAVXVNNI(t *Task)

// amx has AMX_INT8, and may be used only where Linux permits it.
var amx = Kernels{MR: 16, Largest: 1 << 15, Multiply: multiplyAMX}

func multiplyAMX(t *Task) {
	quads := min(t.Quads, maxTileQuads)
	for t.Quads%quads != 0 {
		quads--
	}
	multiplyTiles(t, quads)
}

// maxTileQuads is how many quads of a row of A a tile has at most.
const maxTileQuads = 16

// multiplyTiles is multiplyAMX, with tiles of so many quads, a divisor of the task's.
//
//go:noescape
func multiplyTiles(t *Task, quads int)
