package gemm

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/amx"
	"github.com/octavo-fp8/octavo/internal/integer"
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

// streamFrom is how many results C has at least that are written past the caches: 1 MiB. What
// an area works on fills the second cache, so that lines of C would be fetched from behind
// it only to be written. 1024 and 2048 cubed take four fifths of the time, with all of C
// read after them nine tenths; 512 cubed nine tenths, with C read as long. Tests lower it.
var streamFrom = 1 << 18

// blocking makes areas so large that packing, some 100 ns for 1024 codes of B and 75 for
// those of A, is shared by 24 or 32 products of 32x32x32, of 45 ns and more.
//
// A, 0.75 MiB, stays in a second cache of 2 MiB. The results, up to 3 MiB, pass through it
// once for each step, which costs less than packing A for fewer of them: areas of 512x1024
// are 2 to 3 % faster than 512x512, 768x1024 another 2 %, and 1024x512 2 to 6 % slower.
// Fetching codes ahead, as vectors do, cost 0 to 6 %.
func (amxBackend) blocking() blocking {
	return blocking{mc: 768, nc: 1024, minNC: 256, mcStep: amx.Size}
}

// compute lays squares out panel by panel, each in one piece.
func (amxBackend) compute(s *scratch, p *part, r area, out *result) {
	strips, panels := ceilDiv(r.i1-r.i0, amx.Size), ceilDiv(r.j1-r.j0, amx.Size)
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
			s.packPanel(p, j, j1, st)
			s.multiplySquares(p, panel*strips, strips, st)
			if st.hi == p.k {
				s.storeSquares(p, area{r.i0, r.i1, j, j1}, panel*strips, out)
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
	n, _ = st.length(1)
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
		codes, stride := s.tileRows(&p.a, i, i1, st)
		for c := range count {
			amx.PackRows(to[:piece], codes[c*n:], stride, i1-i, n, bfloat16Codes[p.a.format].decoder)
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
	decoder := bfloat16Codes[p.b.format].decoder
	if p.b.packed {
		columns := s.tileColumns(&p.b, j0, st)
		for c := range count {
			amx.PackColumns(s.packB[c*piece:(c+1)*piece], columns[c*n*amx.Size:(c+1)*n*amx.Size], decoder)
		}
	} else {
		codes, stride := s.tileRows(&p.b, j0, j1, st)
		for c := range count {
			amx.PackTransposed(s.packB[c*piece:(c+1)*piece], codes[c*n:], stride, j1-j0, n, decoder, &s.within)
		}
	}
	s.gatherPanelScales(p, j0, j1, st)
}

// tileRows returns rows [i0, i1) of codes for a step, and what they are apart.
func (s *scratch) tileRows(o *operand, i0, i1 int, st step) (codes []byte, stride int) {
	codes, stride = o.codes[i0*o.stride+st.lo:], o.stride
	table, n := bfloat16Codes[o.format].table, st.hi-st.lo
	if table == nil {
		return codes, stride
	}
	s.codes = grow(s.codes, (i1-i0)*n)
	for i := range i1 - i0 {
		table.Lookup(s.codes[i*n:][:n], codes[i*stride:][:n])
	}
	return s.codes, n
}

// tileColumns returns the packed panel with column j of codes for a step, K-major.
func (s *scratch) tileColumns(o *operand, j int, st step) []byte {
	codes, table := o.panel(j/amx.Size), bfloat16Codes[o.format].table
	if o.layout != kMajor {
		codes = s.columns(o.layout, codes, st.lo, st.hi)
		table.Lookup(codes, codes)
		return codes
	}
	codes = codes[st.lo*amx.Size : st.hi*amx.Size]
	if table == nil {
		return codes
	}
	s.codes = grow(s.codes, len(codes))
	table.Lookup(s.codes, codes)
	return s.codes
}

// multiplySquares adds the products of the strips and the panel to its squares, of which
// the first has the given number.
func (s *scratch) multiplySquares(p *part, first, strips int, st step) {
	c := s.c[first*square : (first+strips)*square]
	fresh := st.lo < p.block // the first one: what is in c is of another product
	if st.first && st.last {
		amx.Multiply(c, amx.Size, s.packA, s.packB, s.scalesA, s.scalesB, len(s.packB)/amx.Pack/st.blocks, &s.within, fresh)
	} else {
		amx.MultiplyPart(c, amx.Size, s.packA, s.packB, s.scalesA, s.scalesB, s.sums[first:first+strips], st.first, st.last, fresh)
	}
}

// storeSquares hands the columns of an area that are a panel, of whose squares the first
// has the given number, to out.
func (s *scratch) storeSquares(p *part, r area, first int, out *result) {
	rows := r.i1 - r.i0
	c := s.c[first*square:][:rows*amx.Size]
	if r.j1-r.j0 < amx.Size || !out.plain(p) {
		amx.CopyRows(c, amx.Size, c, false)
		p.store(c, amx.Size, r, out)
		return
	}
	to := out.float32s[p.at+r.i0*p.n+r.j0:]
	if race.Enabled {
		for i := range rows {
			race.Write(to[i*p.n:][:amx.Size])
		}
	}
	amx.CopyRows(to, p.n, c, len(out.float32s) >= streamFrom)
}

// toBFloat16 is how codes become bfloat16: those of formats of fewer bits become codes of
// E4M3 first, which has all of their values.
type toBFloat16 struct {
	table   *integer.Table // nil: none
	decoder *amx.Decoder   // nil: the backend for AMX does not read the format
}

var bfloat16Codes = func() (all [len(float16Views)]toBFloat16) {
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2, fp8.E4M3FNUZ, fp8.E5M2FNUZ} {
		special := 0
		for code := byte(0x7F); f.IsNaN(code) || f.IsInf(code, 0); code-- {
			special++
		}
		all[f].decoder = amx.NewDecoder(f.Mantissa(), f.Bias(), special, f.Float32)
	}
	for _, f := range []fp8.Format{fp8.E2M1, fp8.E2M3, fp8.E3M2} {
		all[f].decoder = all[fp8.E4M3].decoder
		all[f].table = integer.NewTable(func(code byte) byte { return fp8.EncodeOne(f.Float32(code), fp8.E4M3, fp8.Policy{}) })
	}
	return all
}()
