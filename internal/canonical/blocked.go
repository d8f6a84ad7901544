package canonical

import (
	"context"
	"sync"

	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/internal/race"
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
	ctx      context.Context
	kernels  *microkernel.Kernels
	multiply func(*microkernel.Task) // one of the kernels
	c, a, b  Matrix
	m, n, k  int
	queue    parallel.Queue
}

// scratch is what one worker works with, reused too. Panels of results, in c and p, have
// areaRows rows.
type scratch struct {
	task       microkernel.Task
	a, b, c, p []float32

	panels int // the column of C that the panels in b begin with, if they are for all of K; else -1
}

var (
	products  = sync.Pool{New: func() any { return new(product) }}
	scratches = sync.Pool{New: func() any {
		return &scratch{
			a: make([]float32, areaRows*depth), b: make([]float32, areaCols*depth),
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
func multiplyBlocked(ctx context.Context, kernels *microkernel.Kernels, c, a, b Matrix, m, n, k, workers int, exact bool) {
	if m*n == 0 {
		return
	}
	p := products.Get().(*product)
	p.ctx, p.kernels, p.c, p.a, p.b, p.m, p.n, p.k = ctx, kernels, c, a, b, m, n, k
	if p.multiply = kernels.MultiplyRounded; exact {
		p.multiply = kernels.Multiply
	}
	p.queue.Run(ceilDiv(m, areaRows)*ceilDiv(n, areaCols), workers, p)
	p.ctx, p.c, p.a, p.b = nil, Matrix{}, Matrix{}, Matrix{}
	products.Put(p)
}

// Work computes areas until there are none left or the context has ended. It is for the
// queue.
func (p *product) Work(q *parallel.Queue) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.panels = -1
	down := ceilDiv(p.m, areaRows) // areas below each other follow each other: they share panels
	for job, ok := q.Next(); ok && p.ctx.Err() == nil; job, ok = q.Next() {
		i, j := job%down*areaRows, job/down*areaCols
		r := area{i0: i, i1: min(i+areaRows, p.m), j0: j, j1: min(j+areaCols, p.n)}
		r.whole = (r.i1 - i) / p.kernels.MR * p.kernels.MR
		s.area(p, r)
	}
}

// area is rows [i0, i1) and columns [j0, j1) of C. So many rows make whole register
// blocks: kernels may read and write those where they are.
type area struct{ i0, i1, j0, j1, whole int }

// step is columns [lo, hi) of A and B, which are multiplied together.
type step struct{ lo, hi int }

// length returns the number of columns, and that of whole pairs.
func (st step) length() (n, padded int) {
	n = st.hi - st.lo
	return n, n + n%2
}

// depth returns how far along K a step goes.
func (p *product) depth() int {
	if p.b.packed != nil {
		return packedDepth
	}
	return depth
}

// area computes an area.
func (s *scratch) area(p *product, r area) {
	t := &s.task
	t.Blocks, t.StrideC, t.StrideScaleA = 1, 4*microkernel.PanelWidth, 4
	t.ScaleA, t.ScaleB = &ones[0], &ones[0]
	direct := p.kernels.Direct && p.k > 0
	if !direct {
		clear(s.c)
	}
	for lo := 0; lo < p.k; lo += p.depth() {
		st := step{lo, min(lo+p.depth(), p.k)}
		t.Flags = 0
		if lo == 0 {
			t.Flags |= microkernel.First
		}
		last := st.hi == p.k
		if last {
			t.Flags |= microkernel.Last | microkernel.Canonical
		}
		if last && direct {
			t.Flags |= microkernel.Zero
		}
		s.copyRows(p, r, st)
		for j := r.j0; j < r.j1; j += microkernel.PanelWidth {
			if s.panels != r.j0 {
				s.copyPanel(p, s.panel(p, r, j), j, min(j+microkernel.PanelWidth, r.j1), st)
			}
			s.multiply(p, r, j, st, direct && last)
		}
	}
	if s.panels = -1; p.k <= depth && p.b.packed == nil {
		s.panels = r.j0
	}
	s.store(p, r, direct)
}

// readable reports whether kernels can read rows of A where they are.
func (p *product) readable(st step) bool {
	n, padded := st.length()
	return !p.a.Transposed && n == padded
}

// copyRows copies rows of A for a step, padded to whole pairs and register blocks, but
// for those that kernels read where they are.
func (s *scratch) copyRows(p *product, r area, st step) {
	n, stride := st.length()
	rows := r.i1 - r.i0
	if p.a.Transposed {
		transpose.Matrix(s.a, stride, p.a.Data[st.lo*p.a.Stride+r.i0:], p.a.Stride, n, rows)
		for i := n; i < rows*stride && n < stride; i += stride {
			s.a[i] = 0
		}
	} else {
		there := 0
		if p.readable(st) {
			there = r.whole
		}
		for i := there; i < rows; i++ {
			row := s.a[i*stride : (i+1)*stride]
			clear(row[copy(row, p.a.row(r.i0+i, p.k)[st.lo:st.hi]):])
		}
		for i := 0; i < there && race.Enabled; i++ {
			race.Read(p.a.row(r.i0+i, p.k)[st.lo:st.hi])
		}
	}
	clear(s.a[rows*stride : ceilDiv(rows, p.kernels.MR)*p.kernels.MR*stride])
}

// panel returns the memory of the panel of an area's column j: of B that is packed always the
// same, which stays in the nearest cache.
func (s *scratch) panel(p *product, r area, j int) []float32 {
	if p.b.packed != nil {
		j = r.j0
	}
	return s.b[(j-r.j0)*depth:][:microkernel.PanelWidth*depth]
}

// copyPanel makes a panel of rows [j0, j1) of B for a step.
func (s *scratch) copyPanel(p *product, dst []float32, j0, j1 int, st step) {
	const width = microkernel.PanelWidth
	if j1-j0 < width {
		clear(dst[:depth*width])
	}
	n, padded := st.length()
	clear(dst[n*width : padded*width])
	if p.b.packed != nil {
		halves.Widen(dst, p.b.packed.panel(j0, st))
		return
	}
	if !p.b.Transposed {
		transpose.Matrix(dst, width, p.b.Data[j0*p.b.Stride+st.lo:], p.b.Stride, j1-j0, n)
		return
	}
	for i := range n {
		from := p.b.row(st.lo+i, j1)[j0:]
		if len(from) == width {
			*(*[width]float32)(dst[i*width:]) = [width]float32(from) // faster than copy
		} else {
			copy(dst[i*width:], from)
		}
	}
}

// multiply multiplies an area's rows with the panel of columns j and following. Kernels
// write the last results to C themselves, if that is asked for, where C has all columns.
func (s *scratch) multiply(p *product, r area, j int, st step, direct bool) {
	_, padded := st.length()
	s.task.Pairs = padded / 2
	a, stride := s.a, padded
	if p.readable(st) {
		a, stride = p.a.Data[r.i0*p.a.Stride+st.lo:], p.a.Stride
	}
	var out []float32
	if direct && j+microkernel.PanelWidth <= r.j1 {
		out = p.c.Data[r.i0*p.c.Stride+j:]
	}
	b := s.panel(p, r, j)
	s.multiplyRows(p, a, stride, b, j-r.j0, 0, r.whole, out, p.c.Stride)
	s.multiplyRows(p, s.a[r.whole*padded:], padded, b, j-r.j0, r.whole, r.i1-r.i0, nil, 0)
}

// multiplyRows multiplies rows [lo, hi) of an area, which are those of a, with b, the panel
// of the area's column j. The last results go to out, unless that is nil.
func (s *scratch) multiplyRows(p *product, a []float32, stride int, b []float32, j, lo, hi int, out []float32, outStride int) {
	if lo == hi {
		return
	}
	t := &s.task
	t.RowBlocks = ceilDiv(hi-lo, p.kernels.MR)
	t.StrideA, t.StrideOut = 4*stride, 0
	if out != nil {
		t.StrideOut = 4 * outStride
	}
	at := j*areaRows + lo*microkernel.PanelWidth
	for column := 0; column < microkernel.PanelWidth; column += p.kernels.NR {
		t.A, t.B, t.C, t.P = &a[0], &b[column], &s.c[at+column], &s.p[at+column]
		t.Out = nil
		if out != nil {
			t.Out = &out[column]
		}
		p.multiply(t)
	}
}

// store copies results to C, but for those that kernels wrote.
func (s *scratch) store(p *product, r area, direct bool) {
	for j := r.j0; j < r.j1; j += microkernel.PanelWidth {
		j1 := min(j+microkernel.PanelWidth, r.j1)
		first := 0
		if direct && j1-j == microkernel.PanelWidth {
			first = r.whole
		}
		for i := first; i < r.i1-r.i0; i++ {
			copy(p.c.row(r.i0+i, p.n)[j:j1], s.c[(j-r.j0)*areaRows+i*microkernel.PanelWidth:])
		}
		for i := 0; i < first && race.Enabled; i++ {
			race.Write(p.c.row(r.i0+i, p.n)[j:j1])
		}
	}
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
