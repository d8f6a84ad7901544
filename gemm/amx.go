package gemm

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/amx"
	"github.com/octavo-fp8/octavo/internal/race"
)

// amxBackend computes squares of 32x32 results with the tiles of AMX, of operands in
// bfloat16, which has all values of FP8. K is not 0.
type amxBackend struct{}

// square is how many results one has.
const square = amx.Size * amx.Size

// packDepth is how much of K, with the zeros that make blocks whole chunks, is
// packed at once. A panel of B then takes 32 KiB and stays in the nearest cache
// while the rows of an area pass, which come from the second; so do results, once for
// that much of K. Along 256 the kernel is 3 to 6 % slower.
const packDepth = 512

// stripsAtOnce is how many squares are computed before more codes are fetched.
const stripsAtOnce = 8

// streamed is how many results C has at least that are written past the caches: 1 MiB. What
// an area works on fills the second cache, so that lines of C would be fetched from behind
// it only to be written. 1024 and 2048 cubed take four fifths of the time, with all of C
// read after them nine tenths; 512 cubed nine tenths, with C read as long. Tests lower it.
var streamed = 1 << 18

// blocking makes areas so large that packing, 75 ns for 1024 codes of A and 90 to 110 of
// B, or twice that where they come from behind the second cache, is shared by 16
// products of 40 ns: here an area takes six tenths of its time for these. Its results,
// 1 MiB, and rows, 0.5 MiB, leave room in a cache of 2 MiB for what is prefetched.
func (amxBackend) blocking() blocking {
	return blocking{mc: 512, nc: 512, minNC: 256, mcStep: amx.Size}
}

// compute lays squares out panel by panel, each in one piece.
func (amxBackend) compute(s *scratch, p *part, r area, out *result) {
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
			j1 := min(j+amx.Size, r.j1)
			b, a := p.panelAhead(r, j, st), p.rowsAhead(r.i0+rows*panel/panels, r.i0+rows*(panel+1)/panels, st)
			s.packPanel(p, j, j1, st)
			for strip := 0; strip < strips; strip += stripsAtOnce {
				shares := ceilDiv(strips-strip, stripsAtOnce)
				b.issue(shares)
				a.issue(shares)
				to := min(strip+stripsAtOnce, strips)
				s.multiplySquares(p, strip, to, panel*strips, st)
				if st.hi == p.k {
					s.storeSquares(p, r, strip, to, panel*strips, j, j1, out)
				}
			}
		}
		lo = st.hi
	}
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
func (s *scratch) packPanel(p *part, j0, j1 int, st step) {
	count, n := st.pieces()
	piece := ceilDiv(n, amx.Chunk) * amx.Pack
	s.packB = grow(s.packB, count*piece)
	for c := range count {
		to, lo := s.packB[c*piece:(c+1)*piece], st.lo+c*n
		if p.b.packed {
			amx.PackColumns(to, p.b.panel(j0 / amx.Size)[lo*amx.Size:(lo+n)*amx.Size], bfloat16Codes[p.b.format])
		} else {
			amx.PackTransposed(to, p.b.codes[j0*p.b.stride+lo:], p.b.stride, j1-j0, n, bfloat16Codes[p.b.format], &s.within)
		}
	}
	s.gatherPanelScales(p, j0, j1, st)
}

// multiplySquares adds the products of strips [from, to) and the panel to its squares,
// of which the first has the given number.
func (s *scratch) multiplySquares(p *part, from, to, first int, st step) {
	c := s.c[(first+from)*square : (first+to)*square]
	fresh := st.lo < p.block // the first one: what is in c is of another product
	a, sa := s.packA[from*len(s.packB):to*len(s.packB)], s.scalesA[from*len(s.scalesB):to*len(s.scalesB)]
	if st.first && st.last {
		amx.Multiply(c, amx.Size, a, s.packB, sa, s.scalesB, len(s.packB)/amx.Pack/st.blocks, &s.within, fresh)
	} else {
		amx.MultiplyPart(c, amx.Size, a, s.packB, sa, s.scalesB, s.sums[first+from:first+to], st.first, st.last, fresh)
	}
}

// storeSquares hands squares [from, to) of columns [j0, j1), of which the first has the
// given number, to out.
func (s *scratch) storeSquares(p *part, r area, from, to, first, j0, j1 int, out *result) {
	done := area{r.i0 + from*amx.Size, min(r.i0+to*amx.Size, r.i1), j0, j1}
	c := s.c[(first+from)*square:][:(done.i1-done.i0)*amx.Size]
	if j1-j0 < amx.Size || !out.plain() {
		amx.CopyRows(c, amx.Size, c, false)
		p.store(c, amx.Size, done, out)
		return
	}
	rows := out.float32s[p.at+done.i0*p.n+j0:]
	if race.Enabled {
		for i := range done.i1 - done.i0 {
			race.Write(rows[i*p.n:][:amx.Size])
		}
	}
	amx.CopyRows(rows, p.n, c, len(out.float32s) >= streamed)
}

// ahead is codes that will be needed soon: several stretches of each of some rows.
type ahead [packDepth / 256]prefetch

// newAhead is n codes each of some rows, stride apart, the first of which are given.
func newAhead(first []byte, rows, stride, n int) (a ahead) {
	for i := range a {
		if i*256 < n {
			a[i] = prefetch{address(first) + uintptr(i*256), rows, stride}
		}
	}
	return a
}

// issue fetches one of the given number of shares of what is left.
func (a *ahead) issue(shares int) {
	for i := range a {
		a[i].issue(shares)
	}
}

// panelAhead is the codes of the panel that comes after that of column j: the next,
// or the first of the next step.
func (p *part) panelAhead(r area, j int, st step) ahead {
	k := st.lo
	if j += amx.Size; j >= r.j1 {
		j, k = r.j0, st.hi
	}
	n := min(st.hi-st.lo, p.k-k)
	switch {
	case n <= 0:
		return ahead{}
	case p.b.packed:
		return ahead{{address(p.b.panel(j / amx.Size)[k*amx.Size:]), n * amx.Size / 256, 256}}
	}
	return newAhead(p.b.codes[j*p.b.stride+k:], min(amx.Size, r.j1-j), p.b.stride, n)
}

// rowsAhead is the codes of rows [i0, i1) of A for the next step.
func (p *part) rowsAhead(i0, i1 int, st step) ahead {
	if i0 >= i1 || st.hi == p.k {
		return ahead{}
	}
	return newAhead(p.a.codes[i0*p.a.stride+st.hi:], i1-i0, p.a.stride, min(st.hi-st.lo, p.k-st.hi))
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
