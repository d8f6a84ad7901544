package canonical

import (
	"context"
	"sync"

	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/transpose"
)

// plainProduct is a Multiply in plain Go. It is reused.
type plainProduct struct {
	ctx            context.Context
	c, a, b        Matrix
	m, n, k        int
	plainA, plainB plainCopy
	multiply       func(lo, hi int) // multiplyRows: a closure, made once
}

var plainProducts = sync.Pool{New: func() any {
	p := new(plainProduct)
	p.multiply = p.multiplyRows
	for _, c := range []*plainCopy{&p.plainA, &p.plainB} {
		c.transpose, c.unpack = c.transposeRows, c.unpackRows
	}
	return p
}}

func multiplyGeneric(ctx context.Context, c, a, b Matrix, m, n, k, workers int, _ bool) {
	p := plainProducts.Get().(*plainProduct)
	p.ctx, p.c, p.m, p.n, p.k = ctx, c, m, n, k
	p.a, p.b = p.plainA.of(a, m, k, workers), p.plainB.of(b, n, k, workers)
	parallel.For(m, 1, workers, p.multiply)
	p.ctx, p.c, p.a, p.b = nil, Matrix{}, Matrix{}, Matrix{}
	plainProducts.Put(p)
}

// multiplyRows computes rows [lo, hi) of C.
func (p *plainProduct) multiplyRows(lo, hi int) {
	// A strip of B stays in the nearest cache while all rows of A pass.
	const strip = 16
	n, k := p.n, p.k
	for j0 := 0; j0 < n; j0 += strip {
		j1 := min(j0+strip, n)
		if p.ctx.Err() != nil {
			return
		}
		for i := lo; i < hi; i++ {
			row, x := p.c.row(i, n), p.a.row(i, k)
			j := j0
			for ; j+1 < j1; j += 2 {
				row[j], row[j+1] = DotPair(x, p.b.row(j, k), p.b.row(j+1, k))
			}
			if j < j1 {
				row[j] = Dot(x, p.b.row(j, k))
			}
		}
	}
}

// plainCopy is memory for a matrix that was Transposed or packed, by its rows.
type plainCopy struct {
	rows []float32
	from Matrix
	cols int

	transpose, unpack func(lo, hi int) // transposeRows and unpackRows: closures, made once
}

// of returns a matrix, [rows, cols], that is not Transposed or packed: a copy of one that is,
// valid until the next call.
func (c *plainCopy) of(m Matrix, rows, cols, workers int) Matrix {
	if !m.Transposed && m.packed == nil {
		return m
	}
	n := rows * cols
	if cap(c.rows) < n {
		c.rows = make([]float32, n)
	}
	c.rows = c.rows[:n]
	if n > 0 {
		c.from, c.cols = m, cols
		copyRows := c.transpose
		if m.packed != nil {
			copyRows = c.unpack
		}
		parallel.For(rows, transpose.Columns, workers, copyRows)
		c.from = Matrix{}
	}
	return Dense(c.rows, cols)
}

// unpackRows copies rows [lo, hi).
func (c *plainCopy) unpackRows(lo, hi int) { c.from.packed.unpack(c.rows, lo, hi) }

// transposeRows copies rows [lo, hi).
func (c *plainCopy) transposeRows(lo, hi int) {
	transpose.Matrix(c.rows[lo*c.cols:hi*c.cols], c.cols, c.from.Data[lo:], c.from.Stride, c.cols, hi-lo)
}
