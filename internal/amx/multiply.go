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
	badChunks    = "amx: not a positive number of chunks"
	badScales    = "amx: scales not of whole blocks, or those of A not as many as of B for each strip"
	badSums      = "amx: not as many sums as strips"
	badPack      = "amx: operands of another length than blocks and chunks"
	badStride    = "amx: bad stride of c"
	shortC       = "amx: insufficient length of c"
	badRows      = "amx: not 1 to 32 rows of at least one code"
	shortRows    = "amx: insufficient length of codes"
	badColumns   = "amx: not 1 to 32 columns of at least one code"
	shortColumns = "amx: insufficient length of codes of columns"
	badColumn    = "amx: not whole rows of a panel, or none"
	badRow       = "amx: bad length of a row"
)

// Scratch is memory to work in. It may not be used by two calls at once; its content
// does not matter.
type Scratch struct {
	memory  [Size*Size + alignment/4 - 1]float32 // for sums of products
	columns [Size * Chunk]byte
}

// alignment is that of a cache line, which a row of a tile then is.
const alignment = 64

func (s *Scratch) sums() *float32 {
	skip := -uintptr(unsafe.Pointer(&s.memory)) % alignment / 4
	return &s.memory[skip]
}

// longest is how many chunks the kernel is given at a time, of all strips, since it
// cannot be interrupted: one takes 20 to 50 ns, and a block up to 100 more.
const longest = 512

// Multiply adds the product of A and B to c, whose rows begin stride elements apart.
// B is 32 columns: blocks of K in order, each of the given number of chunks. A is
// one strip of 32 rows or several, one behind the other, each of as many chunks as B;
// the rows of c follow each other likewise. The scales of a block are 32 of sa, by
// row, for each strip, and 32 of sb, by column; there are as many blocks as scales
// for them. With p, the sum over the chunks of a block of what TDPBF16PS adds, it is
//
//	c[i*stride+j] = fma(p[i][j]*sa[i], sb[j], c[i*stride+j])
//
// with p*sa rounded; if c is fresh its elements are taken for +0. Sign and payload of a
// NaN are not specified. Multiply panics, before it writes anything, if a length does not
// fit. It is for level AMX only, and where that is permitted.
func Multiply(c []float32, stride int, a, b []uint16, sa, sb []float32, chunks int, s *Scratch, fresh bool) {
	blocks := len(sb) / Size
	strips := check(c, stride, a, b, sa, sb, blocks, chunks)
	inCall := 1 // strips, which do well to share one
	if depth := blocks * chunks; depth > 0 {
		inCall = max(1, longest/depth)
	}
	for done := 0; done < strips; done += inCall {
		n := min(inCall, strips-done)
		multiplyStrips(c[done*Size*stride:], stride, a[done*len(b):], b, sa[done*len(sb):], sb, chunks, blocks, n, s.sums(), fresh)
	}
}

// multiplyStrips is Multiply for strips that are short enough together for a call,
// or for one that is not.
func multiplyStrips(c []float32, stride int, a, b []uint16, sa, sb []float32, chunks, blocks, strips int, p *float32, fresh bool) {
	if chunks > longest {
		for i := range blocks {
			from, to := i*chunks*Pack, (i+1)*chunks*Pack
			inParts(c, stride, a[from:to], b[from:to], sa[i*Size:], sb[i*Size:], p, true, true, fresh && i == 0)
		}
		return
	}
	for done := 0; done < blocks; {
		n := min(longest/chunks, blocks-done)
		at := done * chunks * Pack
		kernel(multiply)(&c[0], stride, &a[at], &b[at], &sa[done*Size], &sb[done*Size], chunks, n, strips, p, false, false, fresh && done == 0)
		done += n
	}
}

// MultiplyPart is [Multiply] for a part of one block: sums holds p of each strip before and
// after. The block begins here if first; its sums are scaled and added to c if last,
// and c stays as it is otherwise.
func MultiplyPart(c []float32, stride int, a, b []uint16, sa, sb []float32, sums []Sums, first, last, fresh bool) {
	chunks := len(b) / Pack
	strips := check(c, stride, a, b, sa, sb, 1, chunks)
	if len(sums) != strips {
		panic(badSums)
	}
	inCall := max(1, longest/chunks)
	for done := 0; done < strips; done += inCall {
		n := min(inCall, strips-done)
		c, a, sa, p := c[done*Size*stride:], a[done*len(b):], sa[done*Size:], &sums[done][0]
		if n == 1 {
			inParts(c, stride, a[:len(b)], b, sa, sb, p, first, last, fresh)
		} else {
			kernel(multiply)(&c[0], stride, &a[0], &b[0], &sa[0], &sb[0], chunks, 1, n, p, !first, !last, fresh)
		}
	}
}

// Sums is those of products, row by row. It does best to begin where a cache line
// does.
type Sums [Size * Size]float32

// inParts has the kernel do a block of one strip, or part of one, in calls that are
// short enough.
func inParts(c []float32, stride int, a, b []uint16, sa, sb []float32, p *float32, first, last, fresh bool) {
	chunks := len(a) / Pack
	for done := 0; done < chunks; done += longest {
		n := min(chunks-done, longest)
		at := done * Pack
		kernel(multiply)(&c[0], stride, &a[at], &b[at], &sa[0], &sb[0], n, 1, 1, p, done > 0 || !first, done+n < chunks || !last, fresh)
	}
}

// check panics unless the arguments are for so many blocks of so many chunks, and
// returns the number of strips.
func check(c []float32, stride int, a, b []uint16, sa, sb []float32, blocks, chunks int) (strips int) {
	if chunks <= 0 {
		panic(badChunks)
	}
	if len(sb) != blocks*Size || len(sa)%Size != 0 {
		panic(badScales)
	}
	if blocks > 0 {
		strips = len(sa) / len(sb)
	}
	switch {
	case len(sa) != strips*len(sb):
		panic(badScales)
	case len(b) != blocks*chunks*Pack || len(a) != strips*len(b):
		panic(badPack)
	case stride < Size:
		panic(badStride)
	case strips > 0 && len(c) < (strips*Size-1)*stride+Size:
		panic(shortC)
	}
	return strips
}
