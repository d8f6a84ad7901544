package amx

import (
	"math"
	"unsafe"
)

// Decoder is how the codes of a format become bfloat16. Most do by moving their bits
// and adding to the exponent; for 16 or fewer, the subnormal ones and those that
// are not finite, there is a table. The layout is known to the assembly.
type Decoder struct {
	table  [32]uint16 // by the code's last four bits and its sign
	factor uint16     // moves the bits to their place
	mask   uint16     // those, and the sign
	offset uint16     // what the exponent lacks

	// A code is in the table if its magnitude plus special, modulo 128, is below
	// limit: the last ones are, and the first.
	special, limit uint16
}

// NewDecoder returns the conversion of a format with so many bits of mantissa, two or
// three, and such a bias, of whose magnitudes, from 0 to 7F, the last so many, at
// most four, are not finite. Values must be those of bfloat16.
func NewDecoder(mantissa, bias, special int, value func(code byte) float32) *Decoder {
	c := &Decoder{
		factor:  1 << (7 - mantissa),
		mask:    1<<15 | 0x7F<<(7-mantissa),
		offset:  uint16(127-bias) << 7,
		special: uint16(special),
		limit:   uint16(special + 1<<mantissa),
	}
	for code := range 256 {
		if uint16(code+special)&0x7F < c.limit {
			c.table[code&15|code>>7<<4] = uint16(math.Float32bits(value(byte(code))) >> 16)
		}
	}
	return c
}

// PackRows packs n codes each of up to 32 rows of A, which are stride apart, and
// adds zeros for what is missing of 32 rows and whole chunks. dst gets a [Pack] for
// each chunk.
func PackRows(dst []uint16, codes []byte, stride, rows, n int, c *Decoder) {
	chunks := (n + Chunk - 1) / Chunk
	switch {
	case rows < 1 || rows > Size || n < 1:
		panic(badRows)
	case len(codes) < (rows-1)*stride+n:
		panic(shortRows)
	case len(dst) != chunks*Pack:
		panic(badPack)
	}
	kernel(packRows)(&dst[0], &codes[0], stride, rows, n, c)
	if rows < Size {
		for i := range chunks {
			clear(dst[i*Pack+rows*Chunk : (i+1)*Pack])
		}
	}
}

// PackColumns packs the codes of 32 columns of B, in rows of 32: all columns of one
// k lie together. It adds zeros for what is missing of whole chunks. dst gets a
// [Pack] for each.
func PackColumns(dst []uint16, codes []byte, c *Decoder) {
	n := len(codes) / Size
	switch {
	case n == 0 || len(codes) != n*Size:
		panic(badColumn)
	case len(dst) != (n+Chunk-1)/Chunk*Pack:
		panic(badPack)
	}
	kernel(packColumns)(&dst[0], &codes[0], n, c)
}

// PackTransposed packs n codes each of up to 32 columns of B, which are stride apart, and
// adds zeros for what is missing of 32 columns and whole chunks. dst gets a [Pack] for
// each chunk.
func PackTransposed(dst []uint16, codes []byte, stride, columns, n int, c *Decoder, s *Scratch) {
	chunks := (n + Chunk - 1) / Chunk
	switch {
	case columns < 1 || columns > Size || n < 1:
		panic(badColumns)
	case len(codes) < (columns-1)*stride+n:
		panic(shortColumns)
	case len(dst) != chunks*Pack:
		panic(badPack)
	}
	whole := 0 // chunks that need no zeros
	if columns == Size {
		whole = n / Chunk
	}
	if whole > 0 {
		kernel(packTransposed)(&dst[0], &codes[0], stride, whole, c)
	}
	for i := whole; i < chunks; i++ {
		clear(s.columns[:])
		for j := range columns {
			copy(s.columns[j*Chunk:], codes[j*stride+i*Chunk:j*stride+min((i+1)*Chunk, n)])
		}
		kernel(packTransposed)(&dst[i*Pack], &s.columns[0], Chunk, 1, c)
	}
}

// CopyRows copies rows of [Size] results, which follow each other in c, to rows of dst that
// begin stride elements apart. A NaN gets the bits 7FC00000. dst may be c. With stream the
// rows go to memory past the caches, if they are whole cache lines.
func CopyRows(dst []float32, stride int, c []float32, stream bool) {
	rows := len(c) / Size
	switch {
	case len(c) != rows*Size:
		panic(badRow)
	case stride < Size:
		panic(badStride)
	case rows == 0:
		return
	case len(dst) < (rows-1)*stride+Size:
		panic(shortC)
	}
	whole := stride%(alignment/4) == 0 && uintptr(unsafe.Pointer(&dst[0]))%alignment == 0
	kernel(copyRows)(&dst[0], stride, &c[0], rows, stream && whole)
}
