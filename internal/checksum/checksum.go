// Package checksum finds the CRC-32C of a file while it is written in pieces, in any order.
package checksum

import (
	"cmp"
	"hash/crc32"
	"io"
	"slices"
	"sync"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Of returns the CRC-32C of p.
func Of(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }

// Update returns the CRC-32C of what has the given one, followed by p.
func Update(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }

// polynomial is that of CRC-32C. The highest bit of such a number is the coefficient of 1, and
// the lowest that of x^31.
const polynomial = crc32.Castagnoli

// multiply returns the product of two polynomials, modulo that of CRC-32C.
func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 != 0 {
			product ^= b
		}
		b = b>>1 ^ polynomial&-(b&1) // times x
	}
	return product
}

// powers has x to the power of 8*2^i.
var powers = sync.OnceValue(func() (p [64]uint32) {
	p[0] = 1 << 23
	for i := 1; i < len(p); i++ {
		p[i] = multiply(p[i-1], p[i-1])
	}
	return p
})

// Join returns the CRC-32C of one piece followed by another, of n bytes, from those of both:
// that of the first times x^8n, and that of the second.
func Join(first, second uint32, n int64) uint32 {
	p := powers()
	for i := 0; n > 0; i, n = i+1, n>>1 {
		if n&1 != 0 {
			first = multiply(p[i], first)
		}
	}
	return first ^ second
}

// mostPieces bounds the memory of a Writer: 24 MiB.
const mostPieces = 1 << 20

// Writer passes on what is written and sums it up. It may be used by several goroutines at
// once, as far as what it writes to may.
type Writer struct {
	io.WriterAt

	mu     sync.Mutex
	pieces []piece
	many   bool // more than are kept
}

type piece struct {
	from, to int64
	sum      uint32
}

// WriteAt implements [io.WriterAt].
func (w *Writer) WriteAt(p []byte, off int64) (n int, err error) {
	n, err = w.WriterAt.WriteAt(p, off)
	if n <= 0 {
		return n, err
	}
	sum := Of(p[:n])
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.many = w.many || len(w.pieces) == mostPieces; w.many {
		w.pieces = nil
	} else {
		w.pieces = append(w.pieces, piece{off, off + int64(n), sum})
	}
	return n, err
}

// Sum returns the size and the CRC-32C of what was written. ok is false if it is not every
// byte up to the last, once each, or came in more than a million pieces: then it has to be
// read.
func (w *Writer) Sum() (size int64, sum uint32, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortFunc(w.pieces, func(a, b piece) int { return cmp.Compare(a.from, b.from) })
	for _, p := range w.pieces {
		if p.from != size {
			return 0, 0, false
		}
		sum, size = Join(sum, p.sum, p.to-p.from), p.to
	}
	return size, sum, !w.many
}
