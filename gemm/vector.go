package gemm

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// How much of K is decoded at once. A panel of that depth stays in the nearest
// cache, as float32 or as codes, while the rows of an area pass.
const (
	panelDepth  = 256
	skinnyDepth = 1024
)

// vectorBackend computes with the micro-kernels of a level.
type vectorBackend struct{ *microkernel.Kernels }

func (vectorBackend) blocking() blocking {
	return blocking{mc: 384, nc: 512, minNC: 128, mcStep: 12} // a multiple of the MR of all kernels
}

func (v vectorBackend) compute(s *scratch, p *part, r area, out *result) {
	k := v.Kernels
	skinny := p.skinny(k)
	depth := panelDepth
	if skinny {
		depth = skinnyDepth
	}
	rows, width := roundUp(r.i1-r.i0, k.MR), roundUp(r.j1-r.j0, microkernel.PanelWidth)
	s.c = grow(s.c, rows*width)
	clear(s.c)
	if p.block > depth {
		s.p = grow(s.p, rows*width)
	}
	for lo := 0; lo < p.k; {
		st := p.step(lo, depth)
		s.decodeRows(p, r.i0, r.i1, rows, st)
		s.gatherScales(p, r.i0, r.i1, rows, st)
		s.describe(p, rows/k.MR, width, st)
		for j := r.j0; j < r.j1; j += microkernel.PanelWidth {
			j1 := min(j+microkernel.PanelWidth, r.j1)
			s.gatherPanelScales(p, j, j1, st)
			kernel := s.decodePanel(k, p, j, j1, st, skinny)
			next := p.prefetchPanel(r, j, st)
			s.task.Prefetch, s.task.Prefetches, s.task.PrefetchStep = next.address, next.n, next.step
			s.multiply(k, kernel, j-r.j0)
		}
		lo = st.hi
	}
	p.store(s.c, width, r, out)
}

// skinny reports whether A has so few rows that codes of B are better decoded in
// the kernel. Such a kernel sees no padding within blocks.
func (p *part) skinny(k *microkernel.Kernels) bool {
	return k.MultiplyCodes != nil && p.m <= k.MR && float16Views[p.b.format].factor != 0 && (p.block%2 == 0 || p.block >= p.k)
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

// decodePanel prepares columns [j0, j1) of B for a step, in codes or in b, and
// returns the kernel that multiplies with that.
func (s *scratch) decodePanel(k *microkernel.Kernels, p *part, j0, j1 int, st step, skinny bool) func(*microkernel.Task) {
	codes := s.panelCodes(k, p, j0, j1, st)
	view := &float16Views[p.b.format]
	asFloat16 := p.b.allFloat16 || view.exact(k, codes)
	if skinny && asFloat16 {
		s.panel = codes
		if p.m == 1 {
			return k.MultiplyCodesRow
		}
		return k.MultiplyCodes
	}
	n, padded := st.length()
	n, padded = n*microkernel.PanelWidth, padded*microkernel.PanelWidth
	s.b = grow(s.b, st.blocks*padded)
	if n == padded {
		s.decode(k, s.b, codes[:st.blocks*n], p.b.format, asFloat16)
	} else {
		for b := range st.blocks {
			s.decode(k, s.b[b*padded:], codes[b*n:(b+1)*n], p.b.format, asFloat16)
			clear(s.b[b*padded+n : (b+1)*padded])
		}
	}
	s.panel = nil
	return k.Multiply
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

// multiply runs a micro-kernel on the panel whose results are in columns j and
// following of c.
func (s *scratch) multiply(k *microkernel.Kernels, kernel func(*microkernel.Task), j int) {
	t := &s.task
	t.A, t.ScaleA = &s.a[0], &s.scalesA[0]
	for column := 0; column < microkernel.PanelWidth; column += k.NR {
		t.C, t.ScaleB = &s.c[j+column], &s.scalesB[column]
		if s.panel != nil {
			t.Codes = &s.panel[column]
		} else {
			t.B = &s.b[column]
		}
		if t.P = nil; t.Flags&(microkernel.First|microkernel.Last) != microkernel.First|microkernel.Last {
			t.P = &s.p[j+column]
		}
		kernel(t)
	}
}
