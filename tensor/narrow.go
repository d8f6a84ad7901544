package tensor

import "github.com/octavo-fp8/octavo/fp8"

// narrow reports whether a block of a matrix is so narrow that its rows are not
// worth a call each, such as 128x1, and may be encoded in another order: unless
// the order of elements shows, in random bits or in sums.
func (q *Quantizer) narrow(rows, cols int) bool {
	const width, most = 16, 4096
	ordered := q.Policy.Rounding == fp8.Stochastic || q.Stats != nil && q.Stats.Detail != nil
	return cols < width && rows > 1 && rows*cols <= most && !ordered
}

// gathered is a narrow block's values and codes, side by side.
type gathered[T fp8.Float] struct {
	values []T
	codes  []byte
}

// gather copies a block's values from src.
func (g *gathered[T]) gather(src []T, b region, cols int) {
	width := b.j1 - b.j0
	g.values = resize(g.values, (b.i1-b.i0)*width)
	g.codes = resize(g.codes, len(g.values))
	from := b.i0*cols + b.j0
	for to := 0; to < len(g.values); to += width {
		for j := range width {
			g.values[to+j] = src[from+j]
		}
		from += cols
	}
}

// scatter copies the block's codes to their places.
func (g *gathered[T]) scatter(codes []byte, b region, cols int) {
	width := b.j1 - b.j0
	to := b.i0*cols + b.j0
	for from := 0; from < len(g.codes); from += width {
		for j := range width {
			codes[to+j] = g.codes[from+j]
		}
		to += cols
	}
}
