package gemm

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/transpose"
)

// fewBackend computes products of few rows with B in rows, with the parts of A and B
// exchanged: the few rows of A are transposed, and not B, whose codes are decoded as they
// lie. What is decoded of B is a piece, which a nearest cache of 48 KiB holds beside what it
// is multiplied with: all rows of A, 16 at a time. Those stay in the next cache, fewDepth of
// K at a time, and are read for each piece.
type fewBackend struct{ *microkernel.Kernels }

const (
	fewRows      = 2 * microkernel.FewWidth // at most; not more than microkernel.PanelWidth
	fewCols      = 2048                     // of an area, at most: each area transposes A
	fewLeastCols = 128                      // of a product: for fewer, transposing A takes longer than it saves
	mostIdle     = 3                        // lanes of vectors that rows of A leave empty
	fewDepth     = 4096
	fewPieceCols = 24 // rows of B, a multiple of FewRows of all kernels
)

func (fewBackend) blocking() blocking {
	return blocking{mc: fewRows, nc: fewCols, minNC: fewCols / 4, mcStep: microkernel.FewWidth}
}

func (f fewBackend) compute(s *scratch, p *part, r area, out *result) {
	k := f.Kernels
	s.dots = f.Dots
	depth := microkernel.FewDepth * s.atOnce() / pairDepth
	rows, cols, width := r.i1-r.i0, r.j1-r.j0, roundUp(r.i1-r.i0, microkernel.FewWidth)
	s.c = grow(s.c, roundUp(cols, fewPieceCols)*width)
	clear(s.c)
	if p.block > depth {
		s.p = grow(s.p, len(s.c))
	}
	for lo := 0; lo < p.k; {
		whole := p.step(lo, fewDepth)
		s.packFew(k, p, r, width, whole)
		for j := r.j0; j < r.j1; j += fewPieceCols {
			s.gatherFewScales(p, j, min(j+fewPieceCols, r.j1), whole)
			for at := lo; at < whole.hi; {
				st := p.piece(whole, at, depth)
				s.decodeFew(k, p, j, min(j+fewPieceCols, r.j1), st)
				s.fetch(p.prefetchFew(r, j, st.hi, whole))
				s.multiplyFew(k, p, (j-r.j0)*width, min(fewPieceCols, r.j1-j), width, whole, st)
				at = st.hi
			}
		}
		lo = whole.hi
	}
	if out.plain(p) && rows == width {
		transpose.Matrix(out.float32s[p.at+r.i0*p.n+r.j0:], p.n, s.c, width, cols, rows)
		return
	}
	s.row = grow(s.row, width*cols)
	transpose.Matrix(s.row, cols, s.c, width, cols, width)
	p.store(s.row, cols, r, out)
}

// packFew decodes the area's rows of A, times B's unit, for a step, into panels of
// microkernel.FewWidth rows, and gathers their scales.
func (s *scratch) packFew(k *microkernel.Kernels, p *part, r area, width int, st step) {
	const lanes = microkernel.FewWidth
	n, atOnce := st.hi-st.lo, s.atOnce()
	padded := roundUp(n, atOnce)
	s.codes = grow(s.codes, padded*(microkernel.PanelWidth+lanes))
	wide, narrow := s.codes[:padded*microkernel.PanelWidth], s.codes[padded*microkernel.PanelWidth:]
	k.PackPanel(wide, p.a.codes[r.i0*p.a.stride+st.lo:], p.a.stride, r.i1-r.i0, n)
	clear(wide[n*microkernel.PanelWidth:])
	s.scalesA = grow(s.scalesA, st.blocks*microkernel.PanelWidth)
	p.a.scales.across(s.scalesA, microkernel.PanelWidth, r.i0, r.i1, st.lo, p.block)
	if s.dots != nil {
		s.a = grow(s.a, padded*microkernel.PanelWidth/2)
		s.packDotPanel(s.a, wide, p.a.format, step{lo: 0, hi: padded, blocks: 1})
		return
	}
	s.a = grow(s.a, padded*width)
	for i := 0; i < width; i += lanes {
		for at := range padded {
			copy(narrow[at*lanes:][:lanes], wide[at*microkernel.PanelWidth+i:][:lanes])
		}
		fp8.DecodeScaled(s.a[i*padded:], narrow, p.a.format, float16Views[p.b.format].unit)
	}
}

// gatherFewScales lists the scales of rows [j0, j1) of B, row by row, for a step; a single
// row's, if they are the same for all.
func (s *scratch) gatherFewScales(p *part, j0, j1 int, st step) {
	s.scalesB = grow(s.scalesB, fewPieceCols*st.blocks)
	s.task.StrideScaleA = 4 * st.blocks
	if j0/p.b.scales.rows == (j1-1)/p.b.scales.rows {
		j1, s.task.StrideScaleA = j0+1, 0
	}
	for j := j0; j < j1; j++ {
		p.b.scales.along(s.scalesB[(j-j0)*st.blocks:][:st.blocks], j, st.lo, p.block)
	}
}

// decodeFew decodes rows [j0, j1) of B for a piece.
func (s *scratch) decodeFew(k *microkernel.Kernels, p *part, j0, j1 int, st step) {
	n := st.hi - st.lo
	whole := n &^ (microkernel.PanelWidth - 1)
	s.b = grow(s.b, fewPieceCols*microkernel.FewStride)
	if s.dots != nil {
		s.packDotRows(halves(s.b), 2*microkernel.FewStride, p.b.codes[j0*p.b.stride+st.lo:], p.b.stride, j1-j0, p.b.format, step{lo: st.lo, hi: st.hi, blocks: 1})
		return
	}
	v := &float16Views[p.b.format]
	s.view = microkernel.Float16View{Multiplier: v.factor, Mask: v.mask, SpecialMask: v.specialMask, Special: v.special, Unit: 1}
	if whole > 0 {
		k.DecodeRows(&s.b[0], 4*microkernel.FewStride, &p.b.codes[j0*p.b.stride+st.lo], p.b.stride, j1-j0, whole, &s.view)
	}
	if whole < n {
		for j := j0; j < j1; j++ {
			row := s.b[(j-j0)*microkernel.FewStride+whole:][:n-whole+1]
			row[n-whole] = 0
			fp8.DecodeScaled(row, p.b.codes[j*p.b.stride+st.lo+whole:][:n-whole], p.b.format, 1/v.unit)
		}
	}
}

// prefetchFew is the codes of B that come after a piece of a step, of rows j and following,
// that ends at k: those of the same rows, of the next, or of the first in the next step.
func (p *part) prefetchFew(r area, j, k int, whole step) prefetch {
	if k == whole.hi {
		j, k = j+fewPieceCols, whole.lo
	}
	if j >= r.j1 {
		j, k = r.j0, whole.hi
	}
	if k >= p.k {
		return prefetch{}
	}
	return prefetch{address(p.b.codes[j*p.b.stride+k:]), min(fewPieceCols, r.j1-j), p.b.stride}
}

// multiplyFew multiplies the piece of B, of so many of its rows, with the rows of A. Results
// are at c of the area's. The last rows that a kernel takes at once may be of a piece before.
func (s *scratch) multiplyFew(k *microkernel.Kernels, p *part, c, cols, width int, whole, st step) {
	t := &s.task
	atOnce := s.atOnce()
	_, padded := st.length(atOnce)
	block := (st.lo - whole.lo) / p.block
	t.RowBlocks, t.Blocks, t.Pairs, t.Flags = ceilDiv(cols, k.FewRows), st.blocks, padded/atOnce, p.flags(st)
	t.StrideA, t.StrideC, t.Out, t.StrideOut = 4*microkernel.FewStride, 4*width, nil, 0
	t.A, t.ScaleA = &s.b[0], &s.scalesB[block]
	for i := 0; i < width; i += microkernel.FewWidth {
		t.B, t.ScaleB = &s.a[s.fewPanel(i, st.lo-whole.lo, whole)], &s.scalesA[block*microkernel.PanelWidth+i]
		t.C = &s.c[c+i]
		if t.P = nil; t.Flags&(microkernel.First|microkernel.Last) != microkernel.First|microkernel.Last {
			t.P = &s.p[c+i]
		}
		k.MultiplyFew(t)
	}
}

// fewPanel is where the values of rows i and following of A are, from so many k of a step on:
// in a panel of microkernel.FewWidth rows of float32, or in the one panel of bfloat16.
func (s *scratch) fewPanel(i, k int, whole step) int {
	if s.dots != nil {
		return i + k*microkernel.PanelWidth/2
	}
	return i*roundUp(whole.hi-whole.lo, pairDepth) + k*microkernel.FewWidth
}
