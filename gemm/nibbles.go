package gemm

import (
	"github.com/octavo-fp8/octavo/internal/integer"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// A single row of A becomes integers nibblesDepth at a time, and is multiplied with a panel
// nibblesPieceDepth at a time: the panel's scales are decoded for as much, which is up to
// 32 KiB of float32, and still in the nearest cache.
const (
	nibblesDepth      = 8192
	nibblesPieceDepth = 2048
)

// computeNibbles computes an area of a product of a single row with packed weights in
// nibbles, which the kernel reads as they are.
func (s *scratch) computeNibbles(k *integer.Kernels, p *part, r area, out *result) {
	depth, piece := nibblesDepth, min(nibblesPieceDepth, p.longest())
	if p.block > piece {
		depth = piece
	}
	width := roundUp(r.j1-r.j0, microkernel.PanelWidth)
	s.c = grow(s.c, width)
	clear(s.c)
	if p.block > piece {
		s.p = grow(s.p, width)
	}
	for lo := 0; lo < p.k; {
		whole := p.step(lo, depth)
		s.describeIntegers(k, p, whole)
		s.packIntegers(k, p, r, 1, whole)
		for j := r.j0; j < r.j1; j += microkernel.PanelWidth {
			for at := lo; at < whole.hi; {
				st := p.piece(whole, at, piece)
				s.multiplyNibbles(k, p, r, j, st, at-lo)
				at = st.hi
			}
		}
		lo = whole.hi
	}
	p.store(s.c, width, r, out)
}

// multiplyNibbles multiplies with columns j and following for a step, which begins with
// some value of A's that are integers.
func (s *scratch) multiplyNibbles(k *integer.Kernels, p *part, r area, j int, st step, a int) {
	s.gatherPanelScales(p, j, min(j+microkernel.PanelWidth, r.j1), st)
	table, _ := stepsOf[p.b.format].panel(k)
	t := &s.call
	*t = s.integers
	t.RowBlocks, t.Blocks, t.Flags = 1, st.blocks, p.flags(st)
	t.Nibbles, t.Table = &p.b.panel(j / microkernel.PanelWidth)[p.b.layout.size(st.lo)], table.Nibbles()
	t.A, t.Start, t.ScaleA = &s.ints[a], &s.starts[a/p.block], &s.scalesA[a/p.block]
	t.ScaleB, t.C = &s.scalesB[0], &s.c[j-r.j0]
	if t.Flags&(integer.First|integer.Last) != integer.First|integer.Last {
		t.P = &s.p[j-r.j0]
	}
	k.MultiplyNibbles(t)
}
