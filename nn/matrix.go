package nn

import "github.com/octavo-fp8/octavo/internal/parallel"

// elementGrain is the least number of elements worth a goroutine.
const elementGrain = 4096

// sized returns *buf with length n, allocated anew only when it is too small.
// What it holds is unspecified.
func sized(buf *[]float32, n int) []float32 {
	if cap(*buf) < n {
		*buf = make([]float32, n)
	}
	*buf = (*buf)[:n]
	return *buf
}

// add writes a+b to dst, element by element; dst may be a or b.
func add(dst, a, b []float32, workers int) {
	parallel.For(len(dst), elementGrain, workers, func(lo, hi int) {
		addTo(dst[lo:hi], a[lo:hi], b[lo:hi])
	})
}

func addTo(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// transposed returns the transpose of src, [rows, cols], in *buf.
func transposed(buf *[]float32, src []float32, rows, cols, workers int) []float32 {
	dst := sized(buf, len(src))
	transpose(dst, src, rows, cols, workers)
	return dst
}

// transpose writes the transpose of src, [rows, cols], to dst, [cols, rows].
func transpose(dst, src []float32, rows, cols, workers int) {
	// A tile's cache lines of src are read 16 times before they leave the cache.
	const tileRows, tileCols = 64, 16
	parallel.For(cols, tileCols, workers, func(lo, hi int) {
		for c := lo; c < hi; c += tileCols {
			for r := 0; r < rows; r += tileRows {
				transposeTile(dst, src, rows, cols, r, min(r+tileRows, rows), c, min(c+tileCols, hi))
			}
		}
	})
}

// transposeTile does rows r0 to r1 and columns c0 to c1 of src.
func transposeTile(dst, src []float32, rows, cols, r0, r1, c0, c1 int) {
	for c := c0; c < c1; c++ {
		at := r0*cols + c
		to := dst[c*rows+r0 : c*rows+r1]
		for r := range to {
			to[r] = src[at]
			at += cols
		}
	}
}
