// Package amx has the kernel of matrix products for level AMX: 32x32 results from
// operands packed as tiles of bfloat16; and what packs codes of FP8 so, for which
// AVX-512 suffices.
//
// A tile is 1 KiB. For each chunk of 32 of K there are two of each operand, one
// behind the other: of A those of rows 0 to 15 and of rows 16 to 31, each row its 32
// values in order; of B those of columns 0 to 15 and of columns 16 to 31, each pair
// of consecutive k the 16 columns in order and the two values of a column beside
// each other.
package amx

import "unsafe"

const (
	Size  = 32           // rows, and columns, of the results
	Chunk = 32           // of K
	Pack  = Size * Chunk // values of an operand in a chunk
)

const (
	badChunks = "amx: not a positive number of chunks"
	badScales = "amx: scales not of whole blocks, or not as many of A as of B"
	badPack   = "amx: operands of another length than blocks and chunks"
	badStride = "amx: bad stride of c"
	shortC    = "amx: insufficient length of c"
	badRows   = "amx: not 1 to 32 rows of at least one code"
	shortRows = "amx: insufficient length of codes"
	badColumn = "amx: not whole rows of a panel, or none"
	badRow    = "amx: bad length of a row"
)

// Scratch is memory for sums of products. It may not be used by two calls at once;
// its content does not matter.
type Scratch [Size*Size + alignment/4 - 1]float32

// alignment is that of a cache line, which a row of a tile then is.
const alignment = 64

func (s *Scratch) sums() *float32 {
	skip := -uintptr(unsafe.Pointer(s)) % alignment / 4
	return &s[skip]
}

// longest is how many chunks the kernel is given at a time, since it cannot be
// interrupted: one takes 20 to 30 ns, and a block up to 90 more.
const longest = 512

// Multiply adds the product of A and B to c, whose rows begin stride elements apart:
// blocks of K in order, each of the given number of chunks. The scales of a block
// are 32 of sa, by row, and 32 of sb, by column; there are as many blocks as scales
// for them. With p, the sum over the chunks of a block of what TDPBF16PS adds, it is
//
//	c[i*stride+j] = fma(p[i][j]*sa[i], sb[j], c[i*stride+j])
//
// with p*sa rounded. Sign and payload of a NaN are not specified. Multiply panics,
// before it writes anything, if a length does not fit. It is for level AMX only,
// and where that is permitted.
func Multiply(c []float32, stride int, a, b []uint16, sa, sb []float32, chunks int, s *Scratch) {
	blocks := len(sa) / Size
	check(c, stride, a, b, sa, sb, blocks, chunks)
	if chunks <= longest {
		for done := 0; done < blocks; {
			n := min(longest/chunks, blocks-done)
			at := done * chunks * Pack
			kernel(multiply)(&c[0], stride, &a[at], &b[at], &sa[done*Size], &sb[done*Size], chunks, n, s.sums(), false, false)
			done += n
		}
		return
	}
	for i := range blocks {
		from, to := i*chunks*Pack, (i+1)*chunks*Pack
		inParts(c, stride, a[from:to], b[from:to], sa[i*Size:], sb[i*Size:], s.sums(), true, true)
	}
}

// MultiplyPart is [Multiply] for a part of one block: sums holds p before and after. The block
// begins here if first; its sums are scaled and added to c if last, and c stays as
// it is otherwise.
func MultiplyPart(c []float32, stride int, a, b []uint16, sa, sb []float32, sums *Sums, first, last bool) {
	check(c, stride, a, b, sa, sb, 1, len(a)/Pack)
	inParts(c, stride, a, b, sa, sb, &sums[0], first, last)
}

// Sums is those of products, row by row. It does best to begin where a cache line
// does.
type Sums [Size * Size]float32

// inParts has the kernel do a block, or part of one, in calls that are short enough.
func inParts(c []float32, stride int, a, b []uint16, sa, sb []float32, p *float32, first, last bool) {
	chunks := len(a) / Pack
	for done := 0; done < chunks; done += longest {
		n := min(chunks-done, longest)
		at := done * Pack
		kernel(multiply)(&c[0], stride, &a[at], &b[at], &sa[0], &sb[0], n, 1, p, done > 0 || !first, done+n < chunks || !last)
	}
}

// check panics unless the arguments are for so many blocks of so many chunks.
func check(c []float32, stride int, a, b []uint16, sa, sb []float32, blocks, chunks int) {
	switch {
	case chunks <= 0:
		panic(badChunks)
	case len(sa) != blocks*Size || len(sb) != len(sa):
		panic(badScales)
	case len(a) != blocks*chunks*Pack || len(b) != len(a):
		panic(badPack)
	case stride < Size:
		panic(badStride)
	case len(c) < (Size-1)*stride+Size:
		panic(shortC)
	}
}
