package gemm

import (
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/dot"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/tensor"
)

// The result is computed in tiles, from rows of A and B decoded to float32. A
// decoded row of B serves tileRows results, one of A tileCols at least; both
// strips stay in cache for K up to a few thousand.
const (
	tileRows = 64
	tileCols = 16
)

// strips holds what one worker works on, reused from call to call: the decoded
// rows, the scales of the rows of B by block of K, and a row of results.
type strips struct {
	a, b, bScales []float32
	c             [tileCols]float32
}

var pool = sync.Pool{New: func() any { return new(strips) }}

// store receives results of row i, columns j and following.
type store func(i, j int, values []float32)

// run computes the product, steps 1 to 3, and hands it to out in pieces of a
// row. out is called from several goroutines, never twice for one element.
func (p *product) run(workers int, out store) {
	bands, columns := ceilDiv(p.m, tileRows), ceilDiv(p.n, tileCols)
	parallel.For(bands*columns, 1, workers, func(lo, hi int) {
		s := pool.Get().(*strips)
		defer pool.Put(s)
		decoded := -1
		for unit := lo; unit < hi; unit++ {
			band, column := unit/columns, unit%columns
			i0, j0 := band*tileRows, column*tileCols
			i1, j1 := min(i0+tileRows, p.m), min(j0+tileCols, p.n)
			if band != decoded {
				s.a = decodeRows(s.a, p.a, i0, i1)
				decoded = band
			}
			s.b = decodeRows(s.b, p.b, j0, j1)
			s.bScales = p.gatherScales(s.bScales, j0, j1)
			p.tile(s, i0, i1, j0, j1, out)
		}
	})
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// gatherScales lists the scales of rows [j0, j1) of B, block of K by block.
func (p *product) gatherScales(buf []float32, j0, j1 int) []float32 {
	buf = buf[:0]
	for k := 0; k < p.k; k += p.block {
		for j := j0; j < j1; j++ {
			buf = append(buf, p.b.Scale(j, k))
		}
	}
	return buf
}

// tile computes rows [i0, i1) and columns [j0, j1) from the strips.
func (p *product) tile(s *strips, i0, i1, j0, j1 int, out store) {
	width := j1 - j0
	for i := i0; i < i1; i++ {
		c := s.c[:width]
		clear(c)
		row := s.a[(i-i0)*p.k : (i-i0+1)*p.k]
		scales := s.bScales
		for k0 := 0; k0 < p.k; k0 += p.block {
			k1 := min(k0+p.block, p.k)
			p.addBlock(c, row[k0:k1], s.b[k0:], p.a.Scale(i, k0), scales[:width])
			scales = scales[width:]
		}
		canonicalNaN(c)
		out(i, j0, c)
	}
}

// addBlock adds a block of K to a row of results, steps 2 and 3: x is the row of
// A in that block, b the rows of B from it on, sa and sb are their scales.
func (p *product) addBlock(c, x, b []float32, sa float32, sb []float32) {
	sb = sb[:len(c)]
	n, k := len(x), p.k
	j := 0
	for ; j+1 < len(c); j += 2 {
		p0, p1 := dot.Pair(x, b[j*k:j*k+n], b[(j+1)*k:(j+1)*k+n])
		c[j] = fma32(float32(p0*sa), sb[j], c[j])
		c[j+1] = fma32(float32(p1*sa), sb[j+1], c[j+1])
	}
	if j < len(c) {
		p0 := dot.One(x, b[j*k:j*k+n])
		c[j] = fma32(float32(p0*sa), sb[j], c[j])
	}
}

// canonicalNaN gives every NaN the same bits; processors differ in its sign.
func canonicalNaN(c []float32) {
	for j, v := range c {
		if v != v {
			c[j] = math.Float32frombits(0x7FC00000)
		}
	}
}

// decodeRows decodes rows [lo, hi) of t, without scales, into buf or a longer
// slice.
func decodeRows(buf []float32, t *tensor.Tensor, lo, hi int) []float32 {
	_, k := t.Dims()
	if n := (hi - lo) * k; cap(buf) < n {
		buf = make([]float32, n)
	}
	buf = buf[:(hi-lo)*k]
	for i := lo; i < hi; i++ {
		fp8.Decode(buf[(i-lo)*k:(i-lo+1)*k], t.Row(i), t.Format)
	}
	return buf
}
