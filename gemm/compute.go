package gemm

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/tile"
)

// How much of K is decoded at once. A panel of that depth stays in the nearest
// cache, as float32 or as codes, while the rows of an area pass.
const (
	tileDepth = 256
	thinDepth = 1024
)

// vectors is the way of the micro-kernels of a level.
type vectors struct{ *tile.Kernel }

func (vectors) limits() limits {
	return limits{rows: 384, cols: 512, minCols: 128, rowStep: 12} // a multiple of all kernels' rows
}

func (v vectors) compute(s *scratch, p *part, r area, out *result) {
	k := v.Kernel
	thin := p.thin(k)
	depth := tileDepth
	if thin {
		depth = thinDepth
	}
	rows, width := roundUp(r.i1-r.i0, k.Rows), roundUp(r.j1-r.j0, tile.Columns)
	s.c = grow(s.c, rows*width)
	clear(s.c)
	if p.block > depth {
		s.p = grow(s.p, rows*width)
	}
	for lo := 0; lo < p.k; {
		st := p.step(lo, depth)
		s.decodeRows(p, r.i0, r.i1, rows, st)
		s.gatherScales(p, r.i0, r.i1, rows, st)
		s.describe(p, rows/k.Rows, width, st)
		for j := r.j0; j < r.j1; j += tile.Columns {
			j1 := min(j+tile.Columns, r.j1)
			s.gatherPanelScales(p, j, j1, st)
			kernel := s.decodePanel(k, p, j, j1, st, thin)
			next := p.panelAhead(r, j, st)
			s.task.Ahead, s.task.Fetches, s.task.FetchStep = next.address, next.n, next.step
			s.multiply(k, kernel, j-r.j0)
		}
		lo = st.hi
	}
	p.store(s.c, width, r, out)
}

// thin reports whether A has so few rows that codes of B are better decoded in
// the kernel. Such a kernel sees no padding within blocks.
func (p *part) thin(k *tile.Kernel) bool {
	return k.ThinTiles != nil && p.m <= k.Rows && halves[p.b.format].factor != 0 && (p.block%2 == 0 || p.block >= p.k)
}

// describe tells the task of everything that all panels of a step share.
func (s *scratch) describe(p *part, tiles, width int, st step) {
	_, padded := st.length()
	t := &s.task
	t.StrideA, t.StrideC, t.StrideScaleA = 4*padded*st.blocks, 4*width, 4*st.blocks
	t.Tiles, t.Blocks, t.Pairs = tiles, st.blocks, padded/2
	h := &halves[p.b.format]
	t.Multiplier, t.Mask = h.factor, h.mask
	t.Flags = 0
	if st.first {
		t.Flags |= tile.First
	}
	if st.last {
		t.Flags |= tile.Last
	}
	if st.hi == p.k {
		t.Flags |= tile.Canonical
	}
}

// decodePanel prepares columns [j0, j1) of B for a step, in codes or in b, and
// returns the kernel that multiplies with that.
func (s *scratch) decodePanel(k *tile.Kernel, p *part, j0, j1 int, st step, thin bool) func(*tile.Task) {
	codes := s.panelCodes(k, p, j0, j1, st)
	h := &halves[p.b.format]
	fit := p.b.halves || h.fit(k, codes)
	if thin && fit {
		s.panel = codes
		if p.m == 1 {
			return k.ThinRow
		}
		return k.ThinTiles
	}
	n, padded := st.length()
	n, padded = n*tile.Columns, padded*tile.Columns
	s.b = grow(s.b, st.blocks*padded)
	if n == padded {
		s.decode(k, s.b, codes[:st.blocks*n], p.b.format, fit)
	} else {
		for b := range st.blocks {
			s.decode(k, s.b[b*padded:], codes[b*n:(b+1)*n], p.b.format, fit)
			clear(s.b[b*padded+n : (b+1)*padded])
		}
	}
	s.panel = nil
	return k.Tiles
}

// decode decodes codes of a panel, divided by unit.
func (s *scratch) decode(k *tile.Kernel, dst []float32, codes []byte, f fp8.Format, fit bool) {
	h := &halves[f]
	if fit && k.Halves != nil {
		k.Halves(&dst[0], &codes[0], len(codes), h.factor, h.mask)
	} else {
		fp8.DecodeScaled(dst, codes, f, 1/h.unit)
	}
}

// panelCodes returns columns [j0, j1) of B for a step as a panel. One that does
// not have whole pairs of k is followed by zeros.
func (s *scratch) panelCodes(k *tile.Kernel, p *part, j0, j1 int, st step) []byte {
	n := st.hi - st.lo
	even := roundUp(n, 2)
	if p.b.packed {
		panel := p.b.panel(j0 / tile.Columns)
		return panel[st.lo*tile.Columns:][:min(even, p.b.depth-st.lo)*tile.Columns]
	}
	s.codes = grow(s.codes, even*tile.Columns)
	k.Panel(s.codes, p.b.codes[j0*p.b.stride+st.lo:], p.b.stride, j1-j0, n)
	clear(s.codes[n*tile.Columns:])
	return s.codes
}

// multiply runs a micro-kernel on the panel whose results are in columns j and
// following of c.
func (s *scratch) multiply(k *tile.Kernel, kernel func(*tile.Task), j int) {
	t := &s.task
	t.A, t.ScaleA = &s.a[0], &s.scalesA[0]
	for half := 0; half < tile.Columns; half += k.Width {
		t.C, t.ScaleB = &s.c[j+half], &s.scalesB[half]
		if s.panel != nil {
			t.Codes = &s.panel[half]
		} else {
			t.B = &s.b[half]
		}
		if t.P = nil; t.Flags&(tile.First|tile.Last) != tile.First|tile.Last {
			t.P = &s.p[j+half]
		}
		kernel(t)
	}
}
