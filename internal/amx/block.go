// Package amx has the kernel of matrix products for level AMX: 32x32 results from
// operands packed as tiles of bfloat16.
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

// Block adds the product of A and B to c, whose rows begin stride elements apart:
// blocks of K in order, each of the given number of chunks. The scales of a block
// are 32 of sa, by row, and 32 of sb, by column; there are as many blocks as scales
// for them. With p, the sum over the chunks of a block of what TDPBF16PS adds, it is
//
//	c[i*stride+j] = fma(p[i][j]*sa[i], sb[j], c[i*stride+j])
//
// with p*sa rounded. Sign and payload of a NaN are not specified. Block panics,
// before it writes anything, if a length does not fit. It is for level AMX only,
// and where that is permitted.
func Block(c []float32, stride int, a, b []uint16, sa, sb []float32, chunks int, s *Scratch) {
	blocks := len(sa) / Size
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
	for done := 0; done < blocks; {
		n := max(min(longest/chunks, blocks-done), 1)
		// A block that is too long takes several calls, with its sums in between.
		for first := 0; first < chunks; first += longest {
			part := min(chunks-first, longest)
			at := (done*chunks + first) * Pack
			kernel(&c[0], stride, &a[at], &b[at], &sa[done*Size], &sb[done*Size], part, n, s.sums(), first > 0, first+part < chunks)
		}
		done += n
	}
}
