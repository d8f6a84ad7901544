// Package tile has the micro-kernels of octavo's matrix products C = A·Bᵀ, for
// the levels of package cpu that have one.
//
// Vectors run along the columns of C: a lane is one result, which is accumulated
// in the canonical order of package dot, so that all levels agree to the bit. A
// value of A is multiplied with all columns at once; it comes from rows of
// float32. B comes in panels of [Columns] columns, K-major: all columns of one k
// lie together, as float32 or as codes.
//
// Since a product of two FP8 values is exact in float32, a fused multiply-add
// rounds as the addition alone would.
package tile

import "github.com/octavo-fp8/octavo/internal/cpu"

// Columns is the width of a panel of B.
const Columns = 32

// Task is what a micro-kernel is asked to do: to add some blocks of K to the
// results of some rows and of one panel, or to begin, go on with or end one block
// that is too long for that. The layout is known to the assembly; strides are in
// bytes.
type Task struct {
	A *float32 // rows of Blocks blocks of Pairs pairs of values
	B *float32 // the panel, likewise
	C *float32 // results, of whole tiles
	P *float32 // the block's sums so far, if it neither begins nor ends here: laid out as C

	// For kernels on codes in place of B: how a code becomes a float16.
	Codes      *byte
	Multiplier uint64 // four times a factor of the code, extended by its sign to 16 bits
	Mask       uint64 // four times the bits that count then

	ScaleA *float32 // of a row, by block
	ScaleB *float32 // of all columns, by block

	StrideA, StrideC, StrideScaleA int

	Tiles  int // of the kernel's number of rows, one below the other
	Blocks int
	Pairs  int // of consecutive k, in a block

	Flags uint64

	// Codes that will be needed next, to be fetched into the caches meanwhile:
	// Fetches times 256 bytes from Ahead on, FetchStep apart. Kernels count Fetches
	// down. It is an address, not a pointer, since it may end up beyond the codes.
	Ahead     uintptr
	FetchStep int
	Fetches   int
}

// Flags of a Task.
const (
	First     = 1 << iota // blocks begin here
	Last                  // blocks end here: they are scaled and added to C
	Canonical             // and NaN gets the canonical bits
)

// Kernel is the micro-kernels of a level. None of them reads or writes past what
// its task describes. All but Rows, Width and Tiles may be missing;
// plain Go does that then.
type Kernel struct {
	Rows  int // of a tile, that A and C are padded to
	Width int // columns of a tile, a divisor of Columns

	// Tiles multiplies rows of A with a panel of float32, whose products are exact.
	// RoundedTiles rounds them.
	Tiles, RoundedTiles func(*Task)

	// ThinTiles and ThinRow, of which there are both or none, multiply rows of A, or
	// a single one, with a panel of codes, whose values they take as those of
	// float16s.
	ThinTiles, ThinRow func(*Task)

	// Halves writes the values of n codes, a multiple of [Columns], to dst, taking
	// them as float16s.
	Halves func(dst *float32, codes *byte, n int, multiplier, mask uint64)

	// Has reports whether one of n codes, a multiple of [Columns], is value after
	// masking. Both are given eight times.
	Has func(codes *byte, n int, mask, value uint64) bool

	// Transpose writes Down rows of Across codes each, a stride apart, to dst with
	// rows of Columns codes. It does so for n pieces of Across that follow each
	// other in the rows.
	Transpose    func(dst, src *byte, stride, n int)
	Down, Across int
}

// For returns the micro-kernels of a level, or nil if it has none.
func For(l cpu.Level) *Kernel { return kernelFor(l) }
