package gemm

import "github.com/octavo-fp8/octavo/internal/microkernel"

// skinnyDepth is how much of K is multiplied at once where codes are decoded in the
// kernel.
const skinnyDepth = 1024

// skinny reports whether A has so few rows that codes of B are better decoded in
// the kernel. Such a kernel sees no padding within blocks.
func (p *part) skinny(k *microkernel.Kernels) bool {
	return k.MultiplyCodes != nil && p.m <= k.MR && float16Views[p.b.format].factor != 0 && (p.block%2 == 0 || p.block >= p.k)
}

// computeSkinny computes an area of a product of few rows.
func (s *scratch) computeSkinny(k *microkernel.Kernels, p *part, r area, out *result) {
	rows, width := roundUp(r.i1-r.i0, k.MR), roundUp(r.j1-r.j0, microkernel.PanelWidth)
	s.c = grow(s.c, rows*width)
	clear(s.c)
	if p.block > skinnyDepth {
		s.p = grow(s.p, rows*width)
	}
	for lo := 0; lo < p.k; {
		st := p.step(lo, skinnyDepth)
		s.decodeRows(p, r.i0, r.i1, rows, st)
		s.gatherScales(p, r.i0, r.i1, rows, st)
		s.describe(p, rows/k.MR, width, st)
		for j := r.j0; j < r.j1; j += microkernel.PanelWidth {
			j1 := min(j+microkernel.PanelWidth, r.j1)
			s.gatherPanelScales(p, j, j1, st)
			codes := s.panelCodes(k, p, j, j1, st)
			next := p.prefetchPanel(r, j, st)
			s.task.Prefetch, s.task.Prefetches, s.task.PrefetchStep = next.address, next.n, next.step
			if p.asFloat16(k, codes) {
				s.multiplyCodes(k, p, codes, j-r.j0)
			} else {
				s.decodePanel(k, p, codes, false, st)
				s.multiply(k, j-r.j0)
			}
		}
		lo = st.hi
	}
	p.store(s.c, width, r, out)
}

// multiplyCodes multiplies with the codes of a panel, whose results are in columns j
// and following of c.
func (s *scratch) multiplyCodes(k *microkernel.Kernels, p *part, codes []byte, j int) {
	kernel := k.MultiplyCodes
	if p.m == 1 {
		kernel = k.MultiplyCodesRow
	}
	for column := 0; column < microkernel.PanelWidth; column += k.NR {
		s.task.Codes = &codes[column]
		kernel(s.columns(j, column))
	}
}
