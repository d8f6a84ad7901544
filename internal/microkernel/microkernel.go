// Package microkernel has the micro-kernels of octavo's matrix products C = A·Bᵀ
// for the levels of package cpu that have vector instructions. Those of AMX are in
// package amx.
//
// A micro-kernel computes register blocks of MR rows and NR columns of C. Vectors
// run along the columns: a lane is one result, which is accumulated in the
// canonical order of package canonical, so that all levels agree to the bit. A
// value of A is multiplied with all columns at once; it comes from rows of
// float32. B comes packed in panels of [PanelWidth] columns, K-major: all columns
// of one k lie together, as float32 or as codes.
//
// Since a product of two FP8 values is exact in float32, a fused multiply-add
// rounds as the addition alone would.
package microkernel

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
)

// PanelWidth is the number of columns of a packed panel of B.
const PanelWidth = 32

// For MultiplyFew, FewWidth is the number of rows of A in a panel, and FewStride how many
// values rows of B are apart: FewDepth and a cache line, so that rows do not all need the
// same places of the cache.
const (
	FewWidth  = 16
	FewDepth  = 256
	FewStride = FewDepth + 16
)

// Task is the work of one call of a micro-kernel: it adds some blocks of K to the
// results of some rows and of NR columns, or begins, continues or ends one block
// that is too long for one call. The layout is known to the assembly; strides are
// in bytes.
type Task struct {
	A *float32 // rows of Blocks blocks of Pairs pairs of values; but see MultiplyCodesRow
	B *float32 // the panel, likewise
	C *float32 // results, of whole register blocks
	P *float32 // the block's sums so far, if it neither begins nor ends here: laid out as C

	// For kernels that read codes in place of B: how a code becomes a float16.
	Codes      *byte
	Multiplier uint64 // four times a factor of the code, extended by its sign to 16 bits
	Mask       uint64 // four times the bits that count then
	Ahead      int    // bytes from each code to one to be fetched into the caches meanwhile

	Whole float32 // of MultiplyCodeBlocks: what sums of products are multiplied with

	ScaleA *float32 // of a row, by block
	ScaleB *float32 // of all columns, by block

	// Where results go in place of C, rows StrideOut bytes apart, in the call that makes
	// them Canonical; or nil, and 0. Only kernels that are Direct know it.
	Out *float32

	StrideA, StrideC, StrideScaleA, StrideOut int

	RowBlocks int // register blocks, one below the other
	Blocks    int // of K that share scales
	Pairs     int // of consecutive k, in a block

	Flags uint64

	// Codes that will be needed next, to be fetched into the caches meanwhile:
	// Prefetches times 256 bytes from Prefetch on, PrefetchStep apart. Kernels count
	// Prefetches down. Prefetch is an address, not a pointer, since it may end up
	// beyond the codes. Those of arm64 do not fetch, nor do they know Ahead.
	Prefetch     uintptr
	PrefetchStep int
	Prefetches   int
}

// Ahead is how many bytes of codes that lie one after the other are fetched before they are
// needed: what memory delivers while it is waited for.
const Ahead = 4096

// CodeRows is the number of rows of a register block of MultiplyCodeBlocks.
const CodeRows = 4

// FastDenormals reports whether multiply-adds take no longer where an operand is denormal.
func FastDenormals() bool { return fastDenormals }

// Flags of a Task.
const (
	First     = 1 << iota // blocks begin here
	Last                  // blocks end here: they are scaled and added to C
	Canonical             // and NaN gets the canonical bits after the last
	Zero                  // C is zeros, whatever is there; for kernels that are Direct
)

// Float16View says how codes are read as float16s, which processors convert: the code,
// extended by its sign to 16 bits, times a factor, and of that some bits.
type Float16View struct {
	Multiplier, Mask uint64 // four times the factor, and the bits; 0 if there is no view

	// A code that is special after masking is NaN. Eight times each.
	SpecialMask, Special uint64

	Unit float32 // what the values of the float16s must be multiplied with
}

// Kernels is the micro-kernels of a level. None of them reads or writes past what
// its task describes. All but MR, NR and Multiply may be missing; plain Go does
// their work then.
type Kernels struct {
	MR int // rows of a register block, which A and C are padded to
	NR int // columns of a register block, a divisor of PanelWidth

	Direct bool // Multiply and MultiplyRounded know Zero, and Out

	// Multiply multiplies rows of A with a panel of float32, whose products are exact.
	// MultiplyRounded rounds the products.
	Multiply, MultiplyRounded func(*Task)

	// MultiplyCodes and MultiplyCodesRow, of which there are both or none, multiply
	// with a panel of codes, which they read as float16s: a single register block of
	// MR rows and of NR columns, or a single row and all columns. MultiplyCodesRow needs
	// values of A that are float16s as they are where Multiplier is 0x100, and once they
	// are divided by 256 where it is 0x80. It may round others.
	MultiplyCodes, MultiplyCodesRow func(*Task)

	// MultiplyCodeBlocks multiplies whole register blocks of CodeRows rows and 16 columns with
	// a panel of codes, of one block of K, and knows Zero. It takes the float16 of a code for
	// 2^-112 of its value, so that A must be times 2^112/Whole, and is for codes that are
	// numbers, and for processors that multiply denormals fast: see [FastDenormals].
	MultiplyCodeBlocks func(*Task)

	// MultiplyPairs is Multiply for a panel of pairs: one that has the values of each pair of
	// k in an order of the level's own, with NR the whole panel. DecodePairs decodes codes to
	// such a panel, as DecodeFloat16 does to others; PairUp makes one of n values that are
	// K-major. n is whole pairs. There are all three or none.
	MultiplyPairs func(*Task)
	DecodePairs   func(dst *float32, codes *byte, n int, multiplier, mask uint64, ahead int)
	PairUp        func(panel *float32, n int)

	// MultiplyFew is for few rows of A, and has the parts of A and B exchanged, so that
	// codes of B need not be transposed: a single register block of FewRows rows of B, at
	// the task's A, with a panel of [FewWidth] rows of A, at the task's B, with nothing
	// between the values of one k and those of the next. C is transposed likewise. The
	// scales at ScaleB, those of A, multiply first.
	FewRows     int
	MultiplyFew func(*Task)

	// DecodeFloat16 writes the values of n codes, a multiple of [PanelWidth], to dst,
	// reading them as float16s. Meanwhile it fetches what lies ahead bytes after each.
	DecodeFloat16 func(dst *float32, codes *byte, n int, multiplier, mask uint64, ahead int)

	// DecodeRows writes the values, times v.Unit, of rows of n codes, a multiple of
	// [PanelWidth], to rows of dst, strides apart, which are in bytes.
	DecodeRows func(dst *float32, dstStride int, codes *byte, stride, rows, n int, v *Float16View)

	// Contains reports whether one of n codes, a multiple of [PanelWidth], is value
	// after masking. Both are given eight times.
	Contains func(codes *byte, n int, mask, value uint64) bool

	// Transpose writes rows of codes, a stride apart, to dst with rows of PanelWidth
	// codes, of which it may write the rest too. It takes a multiple of 8 rows, PanelWidth
	// at most, and n times TransposeCols codes of each.
	Transpose     func(dst, src *byte, stride, rows, n int)
	TransposeCols int

	Dots *Dots // of kernels with dot products of bfloat16
}

// For returns the micro-kernels that serve a level, or nil if there are none. Level
// AMX has those of AVX512.
func For(l cpu.Level) *Kernels {
	k, _ := byLevel.For(l)
	return k
}

// members are the functions of Kernels, which are registered one by one too.
var members = []struct {
	name string
	of   func(k *Kernels) (present bool)
}{
	{"Multiply", func(k *Kernels) bool { return k.Multiply != nil }},
	{"MultiplyRounded", func(k *Kernels) bool { return k.MultiplyRounded != nil }},
	{"MultiplyCodes", func(k *Kernels) bool { return k.MultiplyCodes != nil }},
	{"MultiplyCodesRow", func(k *Kernels) bool { return k.MultiplyCodesRow != nil }},
	{"MultiplyCodeBlocks", func(k *Kernels) bool { return k.MultiplyCodeBlocks != nil }},
	{"MultiplyPairs", func(k *Kernels) bool { return k.MultiplyPairs != nil }},
	{"DecodePairs", func(k *Kernels) bool { return k.DecodePairs != nil }},
	{"PairUp", func(k *Kernels) bool { return k.PairUp != nil }},
	{"MultiplyFew", func(k *Kernels) bool { return k.MultiplyFew != nil }},
	{"DecodeFloat16", func(k *Kernels) bool { return k.DecodeFloat16 != nil }},
	{"DecodeRows", func(k *Kernels) bool { return k.DecodeRows != nil }},
	{"Contains", func(k *Kernels) bool { return k.Contains != nil }},
	{"Transpose", func(k *Kernels) bool { return k.Transpose != nil }},
}

// register registers the kernels of each level, and each of their functions.
func register(levels ...kernels.Implementation[*Kernels]) *kernels.Operation[*Kernels] {
	for _, m := range members {
		var list []kernels.Implementation[*Kernels]
		for _, l := range levels {
			if m.of(l.Func) {
				list = append(list, l)
			}
		}
		kernels.New("microkernel."+m.name, list...)
	}
	return kernels.New("microkernel.Kernels", levels...)
}
