package gemm

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// panelDepth is how much of K is decoded at once. A panel of that depth stays in the
// nearest cache while the rows of an area pass.
const panelDepth = 256

// vectorBackend computes with the micro-kernels of a level.
type vectorBackend struct{ *microkernel.Kernels }

func (vectorBackend) blocking() blocking {
	return blocking{mc: 384, nc: 512, minNC: 128, mcStep: 12} // a multiple of the MR of all kernels
}

func (v vectorBackend) compute(s *scratch, p *part, r area, out *result) {
	k := v.Kernels
	if p.skinny(k) {
		s.computeSkinny(k, p, r, out)
		return
	}
	rows, width := roundUp(r.i1-r.i0, k.MR), roundUp(r.j1-r.j0, microkernel.PanelWidth)
	s.c = grow(s.c, rows*width)
	clear(s.c)
	if p.block > panelDepth {
		s.p = grow(s.p, rows*width)
	}
	for lo := 0; lo < p.k; {
		st := p.step(lo, panelDepth)
		s.decodeRows(p, r.i0, r.i1, rows, st)
		s.gatherScales(p, r.i0, r.i1, rows, st)
		s.describe(p, rows/k.MR, width, st)
		for j := r.j0; j < r.j1; j += microkernel.PanelWidth {
			j1 := min(j+microkernel.PanelWidth, r.j1)
			s.gatherPanelScales(p, j, j1, st)
			codes := s.panelCodes(k, p, j, j1, st)
			s.decodePanel(k, p, codes, p.asFloat16(k, codes), st)
			next := p.prefetchPanel(r, j, st)
			s.task.Prefetch, s.task.Prefetches, s.task.PrefetchStep = next.address, next.n, next.step
			s.multiply(k, j-r.j0)
		}
		lo = st.hi
	}
	p.store(s.c, width, r, out)
}

// describe tells the task of everything that all panels of a step share.
func (s *scratch) describe(p *part, rowBlocks, width int, st step) {
	_, padded := st.length()
	t := &s.task
	t.StrideA, t.StrideC, t.StrideScaleA = 4*padded*st.blocks, 4*width, 4*st.blocks
	t.RowBlocks, t.Blocks, t.Pairs = rowBlocks, st.blocks, padded/2
	view := &float16Views[p.b.format]
	t.Multiplier, t.Mask = view.factor, view.mask
	t.Flags = 0
	if st.first {
		t.Flags |= microkernel.First
	}
	if st.last {
		t.Flags |= microkernel.Last
	}
	if st.hi == p.k {
		t.Flags |= microkernel.Canonical
	}
}

// asFloat16 reports whether codes of a panel of B can be read as float16s.
func (p *part) asFloat16(k *microkernel.Kernels, codes []byte) bool {
	return p.b.allFloat16 || float16Views[p.b.format].exact(k, codes)
}

// decodePanel decodes the codes of a panel, for a step, into b.
func (s *scratch) decodePanel(k *microkernel.Kernels, p *part, codes []byte, asFloat16 bool, st step) {
	n, padded := st.length()
	n, padded = n*microkernel.PanelWidth, padded*microkernel.PanelWidth
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
		k.DecodeFloat16(&dst[0], &codes[0], len(codes), view.factor, view.mask)
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
		return panel[st.lo*microkernel.PanelWidth:][:min(even, p.b.depth-st.lo)*microkernel.PanelWidth]
	}
	s.codes = grow(s.codes, even*microkernel.PanelWidth)
	k.PackPanel(s.codes, p.b.codes[j0*p.b.stride+st.lo:], p.b.stride, j1-j0, n)
	clear(s.codes[n*microkernel.PanelWidth:])
	return s.codes
}

// multiply multiplies with the panel in b, whose results are in columns j and
// following of c.
func (s *scratch) multiply(k *microkernel.Kernels, j int) {
	for column := 0; column < microkernel.PanelWidth; column += k.NR {
		s.task.B = &s.b[column]
		k.Multiply(s.columns(j, column))
	}
}

// columns is the task for columns of a panel whose first is column j of c.
func (s *scratch) columns(j, column int) *microkernel.Task {
	t := &s.task
	t.A, t.ScaleA = &s.a[0], &s.scalesA[0]
	t.C, t.ScaleB = &s.c[j+column], &s.scalesB[column]
	if t.P = nil; t.Flags&(microkernel.First|microkernel.Last) != microkernel.First|microkernel.Last {
		t.P = &s.p[j+column]
	}
	return t
}
