package gemm

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/geometry"
	"github.com/octavo-fp8/octavo/internal/integer"
	"github.com/octavo-fp8/octavo/internal/microkernel"
	"github.com/octavo-fp8/octavo/internal/race"
)

// vectorBackend computes with the micro-kernels of a level: of float32, or, where they have Dots,
// of bfloat16.
type vectorBackend struct{ *microkernel.Kernels }

func (v vectorBackend) blocking() blocking {
	g := geometry.For(v.Kernels, v.valueBytes())
	return blocking{mc: g.Rows, nc: g.Cols, minNC: min(geometry.ColStep, g.Cols), mcStep: geometry.RowStep, depth: g.Depth}
}

// valueBytes is the size of a value of A or B.
func (v vectorBackend) valueBytes() int {
	if v.Dots != nil {
		return 2
	}
	return 4
}

func (v vectorBackend) compute(s *scratch, p *part, r area, out *result) {
	k := v.Kernels
	s.dots = v.Dots
	rows := roundUp(r.i1-r.i0, k.MR)
	s.c = grow(s.c, rows*roundUp(r.j1-r.j0, microkernel.PanelWidth))
	if !k.Direct || p.k == 0 {
		clear(s.c)
	}
	if p.block > p.depth {
		s.p = grow(s.p, len(s.c))
	}
	written := area{}
	if k.Direct && p.k > 0 && out.plain(p) {
		written = r.direct(k.MR)
	}
	for lo := 0; lo < p.k; {
		st := p.step(lo, p.depth)
		s.decodeArea(k, p, r.i0, r.i1, rows, st)
		s.gatherScales(p, r.i0, r.i1, rows, st)
		s.describe(p, rows/k.MR, microkernel.PanelWidth, st)
		if k.Direct && lo < p.block && st.last {
			s.task.Flags |= microkernel.Zero
		}
		for j := r.j0; j < r.j1; j += microkernel.PanelWidth {
			j1 := min(j+microkernel.PanelWidth, r.j1)
			s.gatherPanelScales(p, j, j1, st)
			codes := s.panelCodes(k, p, j, j1, st)
			s.decodePanel(k, p, codes, s.dots == nil && p.asFloat16(k, codes), st)
			s.multiplyPanel(k, p, r, written, j, st, out)
		}
		lo = st.hi
	}
	s.storePanels(p, rows, r, written, out)
}

// multiplyPanel multiplies with the panel in b, that of column j of C. Meanwhile codes
// are fetched: those of B that come next, and then, if rows are left, a share of those of A.
func (s *scratch) multiplyPanel(k *microkernel.Kernels, p *part, r, written area, j int, st step, out *result) {
	blocks, to := ceilDiv(r.i1-r.i0, k.MR), []float32(nil)
	next := p.prefetchPanel(r, j, st)
	fetches := ceilDiv(st.hi-st.lo, canonical.Chunk) * microkernel.PanelWidth / k.NR // that a register block has time for
	half, whole := min(blocks, max(ceilDiv(blocks, 2), ceilDiv(next.n, fetches))), blocks
	if st.hi == p.k && j < written.j1 {
		whole = (written.i1 - written.i0) / k.MR
		half = min(half, whole)
		to = out.float32s[p.at+r.i0*p.n+j:]
	}
	s.fetch(next)
	s.multiplyRows(k, 0, half, j-r.j0, blocks, to, p.n)
	s.fetch(p.prefetchShare(r, j, st))
	s.multiplyRows(k, half, whole, j-r.j0, blocks, to, p.n)
	s.multiplyRows(k, whole, blocks, j-r.j0, blocks, nil, 0)
}

// fetch has the next call of a kernel fetch codes.
func (s *scratch) fetch(f prefetch) {
	s.task.Prefetch, s.task.Prefetches, s.task.PrefetchStep = f.address, f.n, f.step
}

// multiplyRows multiplies register blocks [lo, hi), of so many, with the panel in b, that
// of column j of the area. Where the last results are ready and out is not nil they go
// there, in rows of the given stride.
func (s *scratch) multiplyRows(k *microkernel.Kernels, lo, hi, j, blocks int, out []float32, stride int) {
	if lo == hi {
		return
	}
	t := &s.task
	t.RowBlocks = hi - lo
	at := j*blocks*k.MR + lo*k.MR*microkernel.PanelWidth
	for column := 0; column < microkernel.PanelWidth; column += k.NR {
		t.A, t.ScaleA = &s.a[lo*k.MR*t.StrideA/4], &s.scalesA[lo*k.MR*t.Blocks]
		t.B, t.ScaleB = &s.b[column], &s.scalesB[column]
		t.C = &s.c[at+column]
		if t.P = nil; t.Flags&(microkernel.First|microkernel.Last) != microkernel.First|microkernel.Last {
			t.P = &s.p[at+column]
		}
		if t.Out, t.StrideOut = nil, 0; out != nil {
			t.Out, t.StrideOut = &out[lo*k.MR*stride+column], 4*stride
		}
		k.Multiply(t)
	}
}

// direct returns the part of an area that kernels write to C themselves: whole register
// blocks, of so many rows, of whole panels.
func (r area) direct(mr int) area {
	r.i1 -= (r.i1 - r.i0) % mr
	r.j1 -= (r.j1 - r.j0) % microkernel.PanelWidth
	return r
}

// storePanels hands what is in panels of an area, of so many rows each, to out, but for
// what the kernels wrote.
func (s *scratch) storePanels(p *part, rows int, r, written area, out *result) {
	s.row = grow(s.row, r.j1-r.j0)
	for i := r.i0; i < r.i1; i++ {
		first := r.j0
		if i < written.i1 {
			first = written.j1
			race.Write(out.float32s[p.at+i*p.n:][r.j0:first])
		}
		if first == r.j1 {
			continue
		}
		for j := first; j < r.j1; j += microkernel.PanelWidth {
			copy(s.row[j-first:], s.c[(j-r.j0)*rows+(i-r.i0)*microkernel.PanelWidth:][:microkernel.PanelWidth])
		}
		p.storeRow(s.row[:r.j1-first], i, first, out)
	}
}

// describe tells the task of everything that all panels of a step share.
func (s *scratch) describe(p *part, rowBlocks, width int, st step) {
	atOnce := s.atOnce()
	_, padded := st.length(atOnce)
	t := &s.task
	t.StrideA, t.StrideC, t.StrideScaleA = 8/atOnce*padded*st.blocks, 4*width, 4*st.blocks
	t.RowBlocks, t.Blocks, t.Pairs = rowBlocks, st.blocks, padded/atOnce
	view := &float16Views[p.b.format]
	t.Multiplier, t.Mask, t.Ahead = view.factor, view.mask, microkernel.Ahead
	t.Flags = p.flags(st)
}

// flags are those of a step's task.
func (p *part) flags(st step) (flags uint64) {
	if st.first {
		flags |= microkernel.First
	}
	if st.last {
		flags |= microkernel.Last
	}
	if st.hi == p.k {
		flags |= microkernel.Canonical
	}
	return flags
}

// rowsAtOnce is how many rows of A one call decodes at most: they may come from memory, or
// from a file that is mapped, and the garbage collector waits for the call.
const rowsAtOnce = 64

// decodeArea decodes rows [i0, i1) of A, times B's unit, for a step, and adds zeros for
// what is missing of the given number of rows.
func (s *scratch) decodeArea(k *microkernel.Kernels, p *part, i0, i1, rows int, st step) {
	if s.dots != nil {
		s.packDotArea(p, i0, i1, rows, st)
		return
	}
	n, padded := st.length(pairDepth)
	v := &float16Views[p.a.format]
	stride, whole := st.hi-st.lo, (st.hi-st.lo)&^(microkernel.PanelWidth-1)
	if k.DecodeRows == nil || v.factor == 0 || n != padded || whole == 0 {
		s.decodeRows(p, i0, i1, rows, st)
		return
	}
	unit := float16Views[p.b.format].unit
	s.a = grow(s.a, rows*stride)
	s.view = microkernel.Float16View{Multiplier: v.factor, Mask: v.mask, SpecialMask: v.specialMask, Special: v.special, Unit: v.unit * unit}
	for i := i0; i < i1; i += rowsAtOnce {
		k.DecodeRows(&s.a[(i-i0)*stride], 4*stride, &p.a.codes[i*p.a.stride+st.lo], p.a.stride, min(rowsAtOnce, i1-i), whole, &s.view)
	}
	if whole < stride {
		for i := i0; i < i1; i++ {
			fp8.DecodeScaled(s.a[(i-i0)*stride+whole:], p.a.codes[i*p.a.stride+st.lo+whole:][:stride-whole], p.a.format, unit)
		}
	}
	clear(s.a[(i1-i0)*stride:])
}

// asFloat16 reports whether codes of a panel of B can be read as float16s.
func (p *part) asFloat16(k *microkernel.Kernels, codes []byte) bool {
	return p.b.allFloat16 || float16Views[p.b.format].exact(k, codes)
}

// decodePanel decodes the codes of a panel, for a step, into b.
func (s *scratch) decodePanel(k *microkernel.Kernels, p *part, codes []byte, asFloat16 bool, st step) {
	n, padded := st.length(s.atOnce())
	n, padded = n*microkernel.PanelWidth, padded*microkernel.PanelWidth
	if s.dots != nil {
		s.b = grow(s.b, st.blocks*padded/2)
		s.packDotPanel(s.b, codes, p.b.format, st)
		return
	}
	s.b = grow(s.b, st.blocks*padded)
	if n == padded {
		s.decode(k, s.b, codes[:st.blocks*n], p.b.format, asFloat16)
		return
	}
	for b := range st.blocks {
		s.decode(k, s.b[b*padded:], codes[b*n:(b+1)*n], p.b.format, asFloat16)
		clear(s.b[b*padded+n : (b+1)*padded])
	}
}

// decode decodes codes of a panel, divided by unit.
func (s *scratch) decode(k *microkernel.Kernels, dst []float32, codes []byte, f fp8.Format, asFloat16 bool) {
	view := &float16Views[f]
	if asFloat16 && k.DecodeFloat16 != nil {
		k.DecodeFloat16(&dst[0], &codes[0], len(codes), view.factor, view.mask, 0)
	} else {
		fp8.DecodeScaled(dst, codes, f, 1/view.unit)
	}
}

// panelCodes returns columns [j0, j1) of B for a step as a panel. One that does
// not have whole pairs of k is followed by zeros.
func (s *scratch) panelCodes(k *microkernel.Kernels, p *part, j0, j1 int, st step) []byte {
	n := st.hi - st.lo
	even := roundUp(n, 2)
	if p.b.packed {
		panel := p.b.panel(j0 / microkernel.PanelWidth)
		if p.b.layout != kMajor {
			return s.columns(p.b.layout, panel, st.lo, min(st.lo+even, p.b.depth))
		}
		return panel[st.lo*microkernel.PanelWidth:][:min(even, p.b.depth-st.lo)*microkernel.PanelWidth]
	}
	s.codes = grow(s.codes, even*microkernel.PanelWidth)
	k.PackPanel(s.codes, p.b.codes[j0*p.b.stride+st.lo:], p.b.stride, j1-j0, n)
	clear(s.codes[n*microkernel.PanelWidth:])
	return s.codes
}

// columns returns codes [lo, hi) of a panel of quads or nibbles K-major.
func (s *scratch) columns(l layout, panel []byte, lo, hi int) []byte {
	const width = microkernel.PanelWidth
	first, last := lo&^(integer.Octet-1), roundUp(hi, integer.Octet)
	panel = panel[l.size(first):l.size(last)]
	s.codes = grow(s.codes, (last-first)*width)
	if l == nibbles {
		s.panel = grow(s.panel, len(s.codes))
		integer.SplitNibbles(s.panel, panel)
		panel = s.panel
	}
	integer.Columns(s.codes, panel)
	return s.codes[(lo-first)*width : (hi-first)*width]
}
