package nn

import (
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/transpose"
)

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

// addRows adds the rows of m to sum, in order. Workers share out columns, so that each sum
// is one worker's.
func addRows(sum, m []float32, workers int) {
	cols := len(sum)
	parallel.For(cols, 16, workers, func(lo, hi int) {
		for at := 0; at < len(m); at += cols {
			addTo(sum[lo:hi], sum[lo:hi], m[at+lo:at+hi])
		}
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
	if len(src) == 0 {
		return dst // there may be columns to share, but no values in them
	}
	const together = transpose.Columns
	parallel.For(cols, max(elementGrain/rows/together, 1)*together, workers, func(lo, hi int) {
		transpose.Matrix(dst[lo*rows:hi*rows], rows, src[lo:], cols, rows, hi-lo)
	})
	return dst
}
