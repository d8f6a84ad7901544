package gemm

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/canonical"
)

// genericBackend is plain Go, for levels without micro-kernels.
type genericBackend struct{}

// blocking has areas about as large as those of vectors. It hardly matters: decoding is
// little beside products in plain Go.
func (genericBackend) blocking() blocking { return blocking{mc: 384, nc: 512, minNC: 128, mcStep: 12} }

// genericCols is how many rows of B are decoded at a time: they stay in cache, for
// K up to a few thousand, while all rows of A pass.
const genericCols = 16

func (genericBackend) compute(s *scratch, p *part, r area, out *result) {
	s.a = s.wholeRows(s.a, &p.a, r.i0, r.i1, p.k)
	width := r.j1 - r.j0
	s.c = grow(s.c, (r.i1-r.i0)*width)
	clear(s.c)
	for j0 := r.j0; j0 < r.j1; j0 += genericCols {
		j1 := min(j0+genericCols, r.j1)
		s.b = s.wholeRows(s.b, &p.b, j0, j1, p.k)
		for i := r.i0; i < r.i1; i++ {
			row := s.a[(i-r.i0)*p.k : (i-r.i0+1)*p.k]
			p.addRow(s.c[(i-r.i0)*width+j0-r.j0:][:j1-j0], row, s.b, i, j0)
		}
	}
	canonicalNaN(s.c)
	p.store(s.c, width, r, out)
}

// addRow adds steps 2 and 3 of row i, columns j0 and following, to c: x is the
// row of A, b the rows of B.
func (p *part) addRow(c, x, b []float32, i, j0 int) {
	for k0 := 0; k0 < p.k; k0 += p.block {
		n := min(p.block, p.k-k0)
		x, sa := x[k0:k0+n], p.a.scale(i, k0)
		j := 0
		for ; j+1 < len(c); j += 2 {
			p0, p1 := canonical.DotPair(x, b[j*p.k+k0:][:n], b[(j+1)*p.k+k0:][:n])
			c[j] = canonical.FMA(float32(p0*sa), p.b.scale(j0+j, k0), c[j])
			c[j+1] = canonical.FMA(float32(p1*sa), p.b.scale(j0+j+1, k0), c[j+1])
		}
		if j < len(c) {
			p0 := canonical.Dot(x, b[j*p.k+k0:][:n])
			c[j] = canonical.FMA(float32(p0*sa), p.b.scale(j0+j, k0), c[j])
		}
	}
}

// wholeRows decodes rows [lo, hi) of an operand into buf or a longer slice.
func (s *scratch) wholeRows(buf []float32, o *operand, lo, hi, k int) []float32 {
	buf = grow(buf, (hi-lo)*k)
	s.codes = grow(s.codes, k)
	for i := lo; i < hi; i++ {
		fp8.Decode(buf[(i-lo)*k:(i-lo+1)*k], o.row(s.codes, i, 0, k), o.format)
	}
	return buf
}

// canonicalBits are those of every NaN.
const canonicalBits = 0x7FC00000

// canonicalNaN gives every NaN the same bits; processors differ in its sign.
func canonicalNaN(c []float32) {
	for j, v := range c {
		if v != v {
			c[j] = math.Float32frombits(canonicalBits)
		}
	}
}
