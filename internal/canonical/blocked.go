package canonical

import (
	"context"
	"sync"

	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/transpose"
)

// A product is computed in areas of at most so many rows and columns, along
// stretches of K of at most depth, a multiple of Chunk.
const (
	areaRows = 192 // a multiple of all kernels' rows
	areaCols = 256 // a multiple of microkernel.PanelWidth
	depth    = 256
)

// product is a Multiply that micro-kernels compute. It is reused.
type product struct {
	ctx     context.Context
	kernels *microkernel.Kernels
	c, a, b Matrix
	m, n, k int
	queue   parallel.Queue
}

// scratch is what one worker works with, reused too.
type scratch struct {
	task       microkernel.Task
	a, b, c, p []float32
}

var (
	products  = sync.Pool{New: func() any { return new(product) }}
	scratches = sync.Pool{New: func() any {
		return &scratch{
			a: make([]float32, areaRows*depth), b: make([]float32, depth*microkernel.PanelWidth),
			c: make([]float32, areaRows*areaCols), p: make([]float32, areaRows*areaCols),
		}
	}}
)

// ones are scales that leave the sums as they are.
var ones = func() (s [areaRows]float32) {
	for i := range s {
		s[i] = 1
	}
	return s
}()

// multiplyBlocked is Multiply with the micro-kernels of a level.
func multiplyBlocked(ctx context.Context, kernels *microkernel.Kernels, c, a, b Matrix, m, n, k, workers int) {
	if m*n == 0 {
		return
	}
	p := products.Get().(*product)
	p.ctx, p.kernels, p.c, p.a, p.b, p.m, p.n, p.k = ctx, kernels, c, a, b, m, n, k
	p.queue.Run(ceilDiv(m, areaRows)*ceilDiv(n, areaCols), workers, p)
	p.ctx, p.c, p.a, p.b = nil, Matrix{}, Matrix{}, Matrix{}
	products.Put(p)
}

// Work computes areas until there are none left or the context has ended. It is for the
// queue.
func (p *product) Work(q *parallel.Queue) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	across := ceilDiv(p.n, areaCols)
	for job, ok := q.Next(); ok && p.ctx.Err() == nil; job, ok = q.Next() {
		i, j := job/across*areaRows, job%across*areaCols
		s.area(p, i, min(i+areaRows, p.m), j, min(j+areaCols, p.n))
	}
}

// area computes rows [i0, i1) and columns [j0, j1).
func (s *scratch) area(p *product, i0, i1, j0, j1 int) {
	t := &s.task
	t.RowBlocks, t.Blocks = ceilDiv(i1-i0, p.kernels.MR), 1
	width := ceilDiv(j1-j0, microkernel.PanelWidth) * microkernel.PanelWidth
	for i := range t.RowBlocks * p.kernels.MR {
		clear(s.c[i*areaCols:][:width])
	}
	t.StrideC, t.ScaleA, t.ScaleB = 4*areaCols, &ones[0], &ones[0]
	t.StrideScaleA = 4
	for lo := 0; lo < p.k; lo += depth {
		hi := min(lo+depth, p.k)
		t.Pairs = ceilDiv(hi-lo, 2)
		t.StrideA = 4 * 2 * t.Pairs
		t.Flags = 0
		if lo == 0 {
			t.Flags |= microkernel.First
		}
		if hi == p.k {
			t.Flags |= microkernel.Last | microkernel.Canonical
		}
		s.copyRows(p, i0, i1, lo, hi)
		for j := j0; j < j1; j += microkernel.PanelWidth {
			s.transpose(p, j, min(j+microkernel.PanelWidth, j1), lo, hi)
			s.multiply(p.kernels, j-j0)
		}
	}
	for i := i0; i < i1; i++ {
		copy(p.c.row(i, p.n)[j0:j1], s.c[(i-i0)*areaCols:])
	}
}

// copyRows copies columns [lo, hi) of rows of A, padded to whole pairs.
func (s *scratch) copyRows(p *product, i0, i1, lo, hi int) {
	stride := s.task.StrideA / 4
	for i := i0; i < i1; i++ {
		row := s.a[(i-i0)*stride : (i-i0+1)*stride]
		clear(row[copy(row, p.a.row(i, p.k)[lo:hi]):])
	}
	clear(s.a[(i1-i0)*stride : s.task.RowBlocks*p.kernels.MR*stride])
}

// transpose makes a panel of columns [lo, hi) of rows [j0, j1) of B.
func (s *scratch) transpose(p *product, j0, j1, lo, hi int) {
	if j1-j0 < microkernel.PanelWidth {
		clear(s.b)
	}
	n := hi - lo
	if n%2 == 1 {
		clear(s.b[n*microkernel.PanelWidth : (n+1)*microkernel.PanelWidth])
	}
	transpose.Matrix(s.b, microkernel.PanelWidth, p.b.Data[j0*p.b.Stride+lo:], p.b.Stride, j1-j0, n)
}

// multiply runs the micro-kernel for the panel in columns j and following of c.
func (s *scratch) multiply(k *microkernel.Kernels, j int) {
	t := &s.task
	t.A = &s.a[0]
	for column := 0; column < microkernel.PanelWidth; column += k.NR {
		t.B, t.C, t.P = &s.b[column], &s.c[j+column], &s.p[j+column]
		k.MultiplyRounded(t)
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
