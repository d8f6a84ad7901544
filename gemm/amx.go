package gemm

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/amx"
	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// amxBackend computes squares of 32x32 results with the tiles of AMX, of operands in
// bfloat16, which has all values of FP8. K is not 0.
type amxBackend struct{ *microkernel.Kernels }

// square is how many results one has.
const square = amx.Size * amx.Size

// packDepth is how much of K, with the zeros that make blocks whole chunks, is
// packed at once. A panel of B then takes 16 KiB and stays in the nearest cache
// while the rows of an area pass, which come from the second; so do results.
const packDepth = 256

// stripsAtOnce is how many squares are computed before more codes are fetched.
const stripsAtOnce = 8

// blocking makes areas so large that conversion, 160 cycles for 1024 codes of A and
// 280 of B that must be rearranged too, is shared by many products of 64 cycles:
// here an area takes three quarters of its time for these. A wider or taller one
// would gain little, and its results, 1.3 MiB, and rows, 0.3 MiB, would leave a
// cache of 2 MiB.
func (amxBackend) blocking() blocking {
	return blocking{mc: 640, nc: 512, minNC: 128, mcStep: amx.Size}
}

// compute lays squares out panel by panel, each in one piece.
func (k amxBackend) compute(s *scratch, p *part, r area, out *result) {
	rows := r.i1 - r.i0
	strips, panels := ceilDiv(rows, amx.Size), ceilDiv(r.j1-r.j0, amx.Size)
	s.c = grow(s.c, panels*strips*square)
	if p.block > packDepth {
		s.sums = grow(s.sums, panels*strips)
	}
	for lo := 0; lo < p.k; {
		st := p.step(lo, p.packedAtOnce())
		s.packStrips(p, r, strips, st)
		for panel := range panels {
			j := r.j0 + panel*amx.Size
			b, a := p.prefetchPanel(r, j, st), p.prefetchRows(r.i0+rows*panel/panels, r.i0+rows*(panel+1)/panels, st)
			b.issue(strips + 1)
			s.packPanel(k.Kernels, p, j, min(j+amx.Size, r.j1), st)
			for strip := 0; strip < strips; strip += stripsAtOnce {
				shares := ceilDiv(strips-strip, stripsAtOnce)
				b.issue(shares)
				a.issue(shares)
				s.multiplySquares(strip, min(strip+stripsAtOnce, strips), panel*strips, st)
			}
		}
		lo = st.hi
	}
	s.storeSquares(p, r, strips, out)
}

// packedAtOnce returns how much of K makes packDepth when it is packed.
func (p *product) packedAtOnce() int {
	if p.block > packDepth {
		return packDepth
	}
	return packDepth / roundUp(p.block, amx.Chunk) * p.block
}

// pieces returns the pieces of a step that are packed each by itself, and their
// length: its blocks, or all at once where those are whole chunks.
func (st step) pieces() (count, n int) {
	n, _ = st.length()
	if n%amx.Chunk == 0 {
		return 1, st.hi - st.lo
	}
	return st.blocks, n
}

// packStrips packs the rows of an area for a step, 32 at a time, and lists their
// scales.
func (s *scratch) packStrips(p *part, r area, strips int, st step) {
	count, n := st.pieces()
	piece := ceilDiv(n, amx.Chunk) * amx.Pack
	s.packA = grow(s.packA, strips*count*piece)
	s.scalesA = grow(s.scalesA, strips*st.blocks*amx.Size)
	to, scales := s.packA, s.scalesA
	for i := r.i0; i < r.i1; i += amx.Size {
		i1 := min(i+amx.Size, r.i1)
		codes := p.a.codes[i*p.a.stride+st.lo:]
		for c := range count {
			amx.PackRows(to[:piece], codes[c*n:], p.a.stride, i1-i, n, bfloat16Codes[p.a.format])
			to = to[piece:]
		}
		p.a.scales.across(scales[:st.blocks*amx.Size], amx.Size, i, i1, st.lo, p.block)
		scales = scales[st.blocks*amx.Size:]
	}
}

// packPanel packs columns [j0, j1) of B for a step and lists their scales.
func (s *scratch) packPanel(k *microkernel.Kernels, p *part, j0, j1 int, st step) {
	codes := s.panelCodes(k, p, j0, j1, st)
	count, n := st.pieces()
	piece := ceilDiv(n, amx.Chunk) * amx.Pack
	s.packB = grow(s.packB, count*piece)
	for c := range count {
		amx.PackColumns(s.packB[c*piece:(c+1)*piece], codes[c*n*microkernel.PanelWidth:(c+1)*n*microkernel.PanelWidth], bfloat16Codes[p.b.format])
	}
	s.gatherPanelScales(p, j0, j1, st)
}

// multiplySquares adds the products of strips [from, to) and the panel to its squares,
// of which the first has the given number.
func (s *scratch) multiplySquares(from, to, first int, st step) {
	c := s.c[(first+from)*square : (first+to)*square]
	if st.lo == 0 {
		clear(c)
	}
	a, sa := s.packA[from*len(s.packB):to*len(s.packB)], s.scalesA[from*len(s.scalesB):to*len(s.scalesB)]
	if st.first && st.last {
		amx.Multiply(c, amx.Size, a, s.packB, sa, s.scalesB, len(s.packB)/amx.Pack/st.blocks, &s.within)
	} else {
		amx.MultiplyPart(c, amx.Size, a, s.packB, sa, s.scalesB, s.sums[first+from:first+to], st.first, st.last)
	}
}

// storeSquares hands an area to out, row by row.
func (s *scratch) storeSquares(p *part, r area, strips int, out *result) {
	n := r.j1 - r.j0
	s.row = grow(s.row, roundUp(n, amx.Size))
	for i := range r.i1 - r.i0 {
		first := i/amx.Size*square + i%amx.Size*amx.Size
		amx.GatherRow(s.row, s.c[first:], strips*square)
		p.storeRow(s.row[:n], r.i0+i, r.j0, out)
	}
}

// bfloat16Codes is how codes become bfloat16, by format.
var bfloat16Codes = func() (all [len(float16Views)]*amx.Decoder) {
	for _, f := range fp8.Formats() {
		special := 0
		for code := byte(0x7F); f.IsNaN(code) || f.IsInf(code, 0); code-- {
			special++
		}
		all[f] = amx.NewDecoder(f.Mantissa(), f.Bias(), special, f.Float32)
	}
	return all
}()
