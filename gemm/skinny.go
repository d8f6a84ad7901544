package gemm

import "github.com/octavo-fp8/octavo/internal/microkernel"

// skinnyBackend computes products of so few rows of A that codes of B are better decoded in
// the kernel, with the blocking of other products.
type skinnyBackend struct{ vectorBackend }

// Few rows of A are decoded skinnyDepth at a time, since codes of B are best read along K
// without a break, packed or in rows. Of B, what is packed is multiplied as far in one call
// where a call takes a panel's whole width. Otherwise it is multiplied skinnyPieceDepth at
// a time: rows are transposed first, and are then still in the nearest cache.
const (
	skinnyDepth      = 8192
	skinnyPieceDepth = 512
)

// compute computes an area panel by panel.
func (b skinnyBackend) compute(s *scratch, p *part, r area, out *result) {
	k := b.Kernels
	rows, width := k.MR, roundUp(r.j1-r.j0, microkernel.PanelWidth)
	depth := skinnyPieceDepth
	if p.b.allFloat16 {
		if p.m == 1 {
			rows = 1
		}
		if p.m == 1 || k.NR == microkernel.PanelWidth {
			depth = skinnyDepth
		}
	}
	s.c = grow(s.c, rows*width)
	clear(s.c)
	if p.block > depth {
		s.p = grow(s.p, rows*width)
	}
	for lo := 0; lo < p.k; {
		whole := p.step(lo, skinnyDepth)
		s.decodeArea(k, p, r.i0, r.i1, rows, whole)
		s.gatherScales(p, r.i0, r.i1, rows, whole)
		s.describe(p, 1, width, whole)
		gathered := -1 // the row of scales that all of a panel's columns have
		for j := r.j0; j < r.j1; j += microkernel.PanelWidth {
			row := p.scaleRow(j, min(j+microkernel.PanelWidth, r.j1))
			for at := lo; at < whole.hi; {
				st := p.piece(whole, at, depth)
				if st != whole || row < 0 || row != gathered {
					s.gatherPanelScales(p, j, min(j+microkernel.PanelWidth, r.j1), st)
				}
				s.multiplySkinny(k, p, r, j, st, at-lo)
				at = st.hi
			}
			gathered = row
		}
		lo = whole.hi
	}
	p.store(s.c, width, r, out)
}

// scaleRow returns the row of the grid of scales that columns [j0, j1) of B share, all of a
// panel; -1 if there is none.
func (p *part) scaleRow(j0, j1 int) int {
	row := j0 / p.b.scales.rows
	if p.b.bytes.codes != nil || j1-j0 < microkernel.PanelWidth || row != (j1-1)/p.b.scales.rows {
		return -1
	}
	return row
}

// multiplySkinny multiplies with columns j and following of B for a step, which begins with
// some value of the rows of A that are decoded.
func (s *scratch) multiplySkinny(k *microkernel.Kernels, p *part, r area, j int, st step, a int) {
	j1 := min(j+microkernel.PanelWidth, r.j1)
	codes := s.panelCodes(k, p, j, j1, st)
	asFloat16 := p.asFloat16(k, codes)
	kernel, columns := k.MultiplyCodes, k.NR
	switch {
	case !asFloat16:
		s.decodePanel(k, p, codes, false, st)
		kernel = k.Multiply
	case p.m == 1:
		kernel, columns = k.MultiplyCodesRow, microkernel.PanelWidth
	}
	t := &s.task
	_, padded := st.length(pairDepth)
	t.Blocks, t.Pairs, t.Flags, t.Prefetches = st.blocks, padded/2, p.flags(st), 0
	t.Out, t.StrideOut = nil, 0
	t.A, t.ScaleA = &s.a[a], &s.scalesA[a/p.block]
	for column := 0; column < microkernel.PanelWidth; column += columns {
		if asFloat16 {
			t.Codes = &codes[column]
		} else {
			t.B = &s.b[column]
		}
		t.C, t.ScaleB = &s.c[j-r.j0+column], &s.scalesB[column]
		if t.P = nil; t.Flags&(microkernel.First|microkernel.Last) != microkernel.First|microkernel.Last {
			t.P = &s.p[j-r.j0+column]
		}
		kernel(t)
	}
}
