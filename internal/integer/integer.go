// Package integer has the micro-kernels of products whose sums within a block of K are
// exact in every order, computed by the processor's integer units: of formats whose
// values are small multiples of one step, such as E2M1, E2M3 and MXINT8.
//
// Operands are integers of eight bits, multiples of their format's step. As long as the
// sums stay within 2^24 steps, adding them in the canonical order of package canonical
// would round nowhere, so that any order gives the same bits; scales are then applied
// as there. A kernel computes register blocks of MR rows and [PanelWidth] columns.
//
// The sum of a block is made a float32 without a conversion: it is added to the bits of
// a large float32, [Magic], whose last bit is worth one step of a product, and that is
// subtracted again. Sums may have [Limit] steps then; longer ones are made of several.
package integer

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

const (
	PanelWidth = microkernel.PanelWidth // columns of a panel of B
	Quad       = 4                      // consecutive k whose values lie together
	Octet      = 2 * Quad               // in nibbles

	// Limit is how many steps the sum of a call may have, of either sign.
	Limit = 1 << 22
)

// Magic is the float32 that sums of products are added to, for a step of 2^exponent:
// 1.5 times 2^23 steps.
func Magic(exponent int) float32 { return float32(math.Ldexp(1.5, 23+exponent)) }

// Task is the work of one call of a kernel: it adds some blocks of K to the results of
// some rows and of a panel's columns, or begins, continues or ends one block that is too
// long for one call. For a row i, a column j and a block b it is
//
//	bits := Start[b][i] + sum over k of A[i][k]*B[k][j]  // int32
//	p := math.Float32frombits(bits) - Magic              // exact
//	if flags&First == 0 { p = P[i][j] + p }              // exact
//	if flags&Last == 0 { P[i][j] = p } else { C[i][j] = fma(float32(p*ScaleA[b][i]), ScaleB[b][j], C[i][j]) }
//
// The layout is known to the assembly; strides are in bytes. Kernels may change the task.
type Task struct {
	A *int8 // rows of Blocks blocks of Quads quads
	B *byte // the panel: each quad its PanelWidth columns, of four values each

	// Of all rows for a block, and StrideScaleA later for the next. Start is the bits of
	// Magic; less what the panel's values are raised by, times the sum of A's in the block.
	Start  *int32
	ScaleA *float32

	ScaleB *float32 // of all columns, by block
	C      *float32 // results, in rows of PanelWidth
	P      *float32 // the block's sums so far, if it neither begins nor ends here: laid out as C

	// Where results go in place of C, rows StrideOut bytes apart, in the call that makes
	// them Canonical; or nil.
	Out *float32

	// For kernels that read nibbles in place of B: the value of each code.
	Nibbles *byte
	Table   *[16]byte

	StrideA, StrideScaleA, StrideOut int

	RowBlocks int // register blocks, one below the other
	Blocks    int // of K that share scales
	Quads     int // in a block

	// How many quads of a lane's sums of two products fit in 16 bits: [math.MaxInt16] by
	// twice the largest magnitude of A times the largest in the panel.
	Run int

	Magic float32
	Flags uint64
}

// Flags of a Task.
const (
	First     = 1 << iota // blocks begin here
	Last                  // blocks end here: they are scaled and added to C
	Canonical             // and NaN gets the canonical bits after the last
	Zero                  // C is zeros, whatever is there
)

// Kernels is the kernels of a level. None of them reads or writes past what its task
// describes.
type Kernels struct {
	MR int // rows of a register block, which A and C are padded to

	// Unsigned is whether the panel's values are raised until none is negative, and are
	// then 0 to 255; otherwise they are signed.
	Unsigned bool

	// Largest is what the largest magnitude of A times the largest in the panel may be.
	Largest int

	Multiply func(*Task)

	// MultiplyNibbles is for a single row and for a panel in nibbles, and may be missing.
	// Of eight consecutive k the first four are in the low nibbles of a quad of bytes, and
	// the others in the high ones. Quads are even.
	MultiplyNibbles func(*Task)
}

// For returns the kernels that serve a level.
func For(l cpu.Level) *Kernels {
	k, _ := byLevel.For(l)
	return k
}

// Plain reports whether k is plain Go, which has all products but is slower than sums in
// float32, in plain Go or with vectors: it is what the others are compared with.
func (k *Kernels) Plain() bool { return k == &generic }

// members are the functions of Kernels, which are registered one by one too.
var members = []struct {
	name string
	of   func(k *Kernels) (present bool)
}{
	{"Multiply", func(k *Kernels) bool { return k.Multiply != nil }},
	{"MultiplyNibbles", func(k *Kernels) bool { return k.MultiplyNibbles != nil }},
}

// register registers the kernels of each level, and each of their functions.
func register(levels ...kernels.Implementation[*Kernels]) *kernels.Operation[*Kernels] {
	levels = append(levels, kernels.At(cpu.Generic, &generic))
	for _, m := range members {
		var list []kernels.Implementation[*Kernels]
		for _, l := range levels {
			if m.of(l.Func) {
				list = append(list, l)
			}
		}
		kernels.New("integer."+m.name, list...)
	}
	return kernels.New("integer.Kernels", levels...)
}
