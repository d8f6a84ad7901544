// Package transpose transposes matrices of float32.
package transpose

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/race"
)

// kernel transposes n squares, one beside the other in src and below the other in dst.
// Strides are in bytes.
type kernel struct {
	squares func(dst, src *float32, dstStride, srcStride, n int)
	side    int // of a square
}

const (
	// stripe is how many squares are transposed at a time: the rows of dst that they fill
	// stay within reach while the rows of src pass.
	stripe = 4

	widest = 16 // side of a square, of all kernels

	// Columns is how many columns go together at every level: parts of a matrix that are
	// transposed by different goroutines are best multiples of it.
	Columns = stripe * widest
)

const short = "transpose: a matrix is shorter than its shape says"

// Matrix writes the columns of src, [rows, cols] with rows srcStride apart, to dst as
// rows dstStride apart. It panics if one is too short; they must not overlap.
func Matrix(dst []float32, dstStride int, src []float32, srcStride, rows, cols int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if len(dst) < (cols-1)*dstStride+rows || len(src) < (rows-1)*srcStride+cols {
		panic(short)
	}
	k, ok := matrix.For(cpu.Current())
	if !ok || rows < k.side || cols < k.side {
		generic(dst, dstStride, src, srcStride, rows, cols)
		return
	}
	note(dst, dstStride, src, srcStride, rows, cols)
	for col := 0; col < cols; col += stripe * k.side {
		whole := min((cols-col)/k.side, stripe)
		for row := 0; row < rows; row += k.side {
			// What is less than a square is done with some of what is done already.
			row := min(row, rows-k.side)
			if whole > 0 {
				k.squares(&dst[col*dstStride+row], &src[row*srcStride+col], 4*dstStride, 4*srcStride, whole)
			}
			if whole < stripe && cols%k.side != 0 {
				last := cols - k.side
				k.squares(&dst[last*dstStride+row], &src[row*srcStride+last], 4*dstStride, 4*srcStride, 1)
			}
		}
	}
}

// note tells the race detector what kernels touch.
func note(dst []float32, dstStride int, src []float32, srcStride, rows, cols int) {
	if !race.Enabled {
		return
	}
	for row := range rows {
		race.Read(src[row*srcStride:][:cols])
	}
	for col := range cols {
		race.Write(dst[col*dstStride:][:rows])
	}
}

// generic reads a tile's cache lines of src 16 times before they leave the cache.
func generic(dst []float32, dstStride int, src []float32, srcStride, rows, cols int) {
	const tileRows, tileCols = 64, 16
	for c0 := 0; c0 < cols; c0 += tileCols {
		for r0 := 0; r0 < rows; r0 += tileRows {
			r1 := min(r0+tileRows, rows)
			for c := c0; c < min(c0+tileCols, cols); c++ {
				at := r0*srcStride + c
				to := dst[c*dstStride+r0 : c*dstStride+r1]
				for r := range to {
					to[r] = src[at]
					at += srcStride
				}
			}
		}
	}
}
