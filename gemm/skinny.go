package gemm

import "github.com/octavo-fp8/octavo/internal/microkernel"

// How much of K is multiplied at once where codes are decoded in the kernel. Packed codes
// are best read in one go, since panels follow each other in memory: that is all of K
// but where a call would take too long, as the garbage collector waits for it. Other
// codes are transposed first, and then multiplied before they leave the second cache.
const (
	skinnyDepth       = 1024
	skinnyDepthPacked = 8192
)

// skinny reports whether A has so few rows that codes of B are better decoded in
// the kernel. Such a kernel sees no padding within blocks.
func (p *part) skinny(k *microkernel.Kernels) bool {
	return k.MultiplyCodes != nil && p.m <= k.CodesRows && float16Views[p.b.format].factor != 0 && (p.block%2 == 0 || p.block >= p.k)
}

// computeSkinny computes an area of a product of few rows.
func (s *scratch) computeSkinny(k *microkernel.Kernels, p *part, r area, out *result) {
	rows, width := roundUp(max(k.CodesRows, p.m), k.MR), roundUp(r.j1-r.j0, microkernel.PanelWidth)
	depth := skinnyDepth
	if p.b.allFloat16 {
		if p.m == 1 {
			rows = 1
		}
		if p.m == 1 || k.NR == microkernel.PanelWidth {
			depth = skinnyDepthPacked
		}
	}
	s.task.Prefetches = 0
	s.c = grow(s.c, rows*width)
	clear(s.c)
	if p.block > depth {
		s.p = grow(s.p, rows*width)
	}
	for lo := 0; lo < p.k; {
		st := p.step(lo, depth)
		s.decodeRows(p, r.i0, r.i1, rows, st)
		s.gatherScales(p, r.i0, r.i1, rows, st)
		s.describe(p, ceilDiv(rows, k.MR), width, st)
		for j := r.j0; j < r.j1; j += microkernel.PanelWidth {
			j1 := min(j+microkernel.PanelWidth, r.j1)
			s.gatherPanelScales(p, j, j1, st)
			codes := s.panelCodes(k, p, j, j1, st)
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
	kernel, columns := k.MultiplyCodes, k.NR
	if p.m == 1 {
		kernel, columns = k.MultiplyCodesRow, microkernel.PanelWidth
	}
	for column := 0; column < microkernel.PanelWidth; column += columns {
		s.task.Codes = &codes[column]
		kernel(s.columns(j, column))
	}
}
