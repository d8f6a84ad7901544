package oracle

import (
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/dots"
	"github.com/octavo-fp8/octavo/tensor"
)

// strips are the operands of a tile, and the sums of products of every block of K. Those
// are computed in float64 where they are exact there: but for the E5M2 formats in blocks of up to
// 2^17 products, else unless the codes of a row and a column differ by too many powers of two.
type strips struct {
	p      *product
	blocks int
	kept   bool // sums of all blocks at once: else each is computed when it is asked for
	tame   bool // as derivation says
	tile   *tile
	run    uint64 // of the product whose rows of A these are
	i0     int
	rowsA  side
	panelB side

	length   int       // bits that the number of products of a sum needs
	sums     []float64 // of products of codes: [row][block][column]
	scalesA  []float64 // [row][block]
	scalesB  []float64 // [block][column]
	absolute []float64 // sums of magnitudes, if they are asked for, as sums
	x, y     []float64 // what they are of
	column   []float64 // of y

	begunA, begunB bool // of the integers
	integers       integerStrips
}

// side is one operand's part of a tile. Codes that are not finite are 0.
type side struct {
	values  []float64 // rows of A, or a panel of columns of B, rows where sums are not kept
	widths  []int     // by row: bits from the highest to the lowest of magnitudes
	special []bool    // by row: has a NaN or an infinity, or a scale that is NaN
}

var (
	stripsPool = sync.Pool{New: func() any { return new(strips) }}
	runs       atomic.Uint64
)

// strips returns those of a tile; the caller puts them back into stripsPool. tables are
// those of the magnitudes that are asked for.
func (p *product) strips(t *tile, tables *[2][256]float64) *strips {
	s := stripsPool.Get().(*strips)
	again := s.run == p.run && s.i0 == t.i0
	s.p, s.blocks, s.tile, s.run, s.i0 = p, p.blocks(), t, p.run, t.i0
	s.kept = s.blocks <= mostKept
	s.begunA, s.begunB = s.begunA && again, false
	rows := (t.i1 - t.i0 + dots.Group - 1) / dots.Group * dots.Group
	aligned := tables != nil
	s.length = bits.Len(uint(max(min(p.block, p.k), 1) - 1))
	if !again {
		s.rowsA.scan(p.a, t.i0, t.i1)
		s.rowsA.values = decodeRows(s.rowsA.values, p.a, t.i0, t.i1, rows, &valueTables[p.a.Format])
		if aligned {
			s.x = decodeRows(s.x, p.a, t.i0, t.i1, rows, &tables[0])
		}
		s.scalesA = decodeScales(s.scalesA, p, &p.scalesA, t.i0, t.i1, p.blocks(), 1)
	}
	if t.some == nil {
		s.panelB.scan(p.b, t.j0, t.j1)
	}
	s.scalesB = decodeScales(s.scalesB, p, &p.scalesB, t.j0, t.j1, 1, dots.Columns)
	switch {
	case t.some != nil:
		s.keepSome(tables, rows)
	case s.kept:
		s.keep(tables, rows)
	default:
		s.decodeColumns(tables)
	}
	return s
}

// mostKept is the number of blocks of K whose sums are kept: 16 MiB of them, and as much
// of magnitudes.
const mostKept = 4096

// keep computes the sums of all blocks.
func (s *strips) keep(tables *[2][256]float64, rows int) {
	p, t := s.p, s.tile
	if s.fits(slices.Min(s.rowsA.widths), slices.Min(s.panelB.widths)) {
		s.panelB.values = decodePanel(s.panelB.values, p.b, t.j0, t.j1, &valueTables[p.b.Format])
		s.sums = p.multiply(s.sums, s.rowsA.values, s.panelB.values, rows)
		if tables != nil {
			s.y = decodePanel(s.y, p.b, t.j0, t.j1, &tables[1])
			s.absolute = p.multiply(s.absolute, s.x, s.y, rows)
		}
	}
	if tables != nil {
		s.addMagnitudes(&tables[1], rows)
	}
}

// keepSome computes the sums of the elements that are asked for, of rows of B that are
// decoded once each. A sum of values is exact in every order, or is not used.
func (s *strips) keepSome(tables *[2][256]float64, rows int) {
	p, t, k := s.p, s.tile, s.p.k
	columns := t.j1 - t.j0
	b := &s.panelB
	b.special, b.widths, b.values = grow(b.special, columns), grow(b.widths, columns), grow(b.values, columns*k)
	if tables != nil {
		s.y = grow(s.y, columns*k)
	}
	if s.kept {
		s.sums = grow(s.sums, rows*s.blocks*dots.Columns)
		s.absolute = grow(s.absolute, rows*s.blocks*dots.Columns)
	}
	var decoded [dots.Columns]bool
	for _, x := range t.some {
		i, j := x.i-t.i0, x.j-t.j0
		if !decoded[j] {
			decoded[j] = true
			b.scanRow(p.b, x.j, j)
			decodeRow(b.values[j*k:][:k], p.b.Row(x.j), &valueTables[p.b.Format])
			if tables != nil {
				decodeRow(s.y[j*k:][:k], p.b.Row(x.j), &tables[1])
			}
		}
		if !s.kept {
			continue
		}
		for q := range s.blocks {
			at := (i*s.blocks+q)*dots.Columns + j
			s.sums[at] = s.dot(s.rowsA.values, b.values, i, j, q)
			if tables != nil {
				s.absolute[at] = s.dot(s.x, s.y, i, j, q)
			}
		}
	}
}

// decodeColumns decodes columns as rows of B, for sums that are not kept.
func (s *strips) decodeColumns(tables *[2][256]float64) {
	p, t := s.p, s.tile
	s.panelB.values = decodeRows(s.panelB.values, p.b, t.j0, t.j1, t.j1-t.j0, &valueTables[p.b.Format])
	if tables != nil {
		s.y = decodeRows(s.y, p.b, t.j0, t.j1, t.j1-t.j0, &tables[1])
	}
}

// dot is the sum of block q of row i of x and row j of y, which is not kept.
func (s *strips) dot(x, y []float64, i, j, q int) float64 {
	lo, hi := s.p.span(q)
	return dotMagnitudes(x[i*s.p.k:][lo:hi], y[j*s.p.k:][lo:hi])
}

// magnitude is the sum of magnitudes of block q of the tile's row i and column j.
func (s *strips) magnitude(i, j, q int) float64 {
	if !s.kept {
		return s.dot(s.x, s.y, i, j, q)
	}
	return s.absolute[(i*s.blocks+q)*dots.Columns+j]
}

// exact reports whether sums of the tile's row i and column j are.
func (s *strips) exact(i, j int) bool { return s.fits(s.rowsA.widths[i], s.panelB.widths[j]) }

// fits reports whether sums of products of numbers so wide fit a float64.
func (s *strips) fits(a, b int) bool { return a+b+s.length <= 53 }

// multiply writes the sums of all blocks, [row][block][column].
func (p *product) multiply(sums, x, panel []float64, rows int) []float64 {
	stride := p.blocks() * dots.Columns
	sums = grow(sums, rows*stride)
	for q := range p.blocks() {
		lo, hi := p.span(q)
		dots.Multiply(sums[q*dots.Columns:], stride, x[lo:], p.k, panel[lo*dots.Columns:], hi-lo, rows)
	}
	return sums
}

// addMagnitudes computes the sums of magnitudes where order matters: it is that of
// dotMagnitudes.
func (s *strips) addMagnitudes(table *[256]float64, rows int) {
	p, t := s.p, s.tile
	blocks := p.blocks()
	s.absolute = grow(s.absolute, rows*blocks*dots.Columns)
	for j := range t.j1 - t.j0 {
		decoded := false
		for i := range t.i1 - t.i0 {
			if s.exact(i, j) {
				continue
			}
			if !decoded {
				s.column, decoded = decodeRows(s.column, p.b, t.j0+j, t.j0+j+1, 1, table), true
			}
			x := s.x[i*p.k : (i+1)*p.k]
			for q := range blocks {
				lo, hi := p.span(q)
				s.absolute[(i*blocks+q)*dots.Columns+j] = dotMagnitudes(x[lo:hi], s.column[lo:hi])
			}
		}
	}
}

// special reports whether element (i, j) has a code that is not finite, or a scale that is
// NaN.
func (s *strips) special(i, j int) bool {
	return s.rowsA.special[i-s.tile.i0] || s.panelB.special[j-s.tile.j0]
}

// sum adds all blocks of element (i, j), under its outer scales. What it returns is sure
// only if it says so.
func (s *strips) sum(i, j int) (sum twofold, sure bool) {
	sum, sure = s.sumOfBlocks(i-s.tile.i0, j-s.tile.j0)
	if sure && !s.p.outers.none {
		sum.times(s.p.outers.at(i, j))
	}
	return sum, sure
}

// sumOfBlocks is sum without outer scales, of the tile's row i and column j.
func (s *strips) sumOfBlocks(i, j int) (sum twofold, sure bool) {
	if !s.exact(i, j) {
		return sum, false
	}
	blocks := s.blocks
	at := i * blocks
	scales := s.scalesA[at : at+blocks]
	if !s.kept {
		for q, sa := range scales {
			sum.addProduct(s.dot(s.rowsA.values, s.panelB.values, i, j, q), float64(sa*s.scalesB[q*dots.Columns+j]))
		}
		return sum, true
	}
	sums := s.sums[at*dots.Columns:][:blocks*dots.Columns]
	others := s.scalesB[:len(sums)]
	for _, sa := range scales {
		// Two scales have 48 bits.
		sum.addProduct(sums[j], float64(sa*others[j]))
		j += dots.Columns
	}
	return sum, true
}

// accumulate adds all blocks of element (i, j), whatever they are.
func (s *strips) accumulate(sum *accumulator, i, j int) {
	p, t, v := s.p, s.tile, &s.integers
	if !s.begunA {
		s.begunA = true
		v.a.begin(p.a, t.i0, t.i1, wide(p.a.Format) && wide(p.b.Format))
	}
	if !s.begunB {
		s.begunB = true
		v.b.begin(p.b, t.j0, t.j1, false)
	}
	v.a.need(i - t.i0)
	v.b.need(j - t.j0)
	p.sum(sum, &v.a, &v.b, i, j, t.i0, t.j0)
}

const specialMark = 1 << 63

// marks has the integer magnitude of each code, and specialMark where it is not finite.
// valueTables has the codes themselves, 0 where they are not finite.
var marks, valueTables = makeCodeTables()

func makeCodeTables() (marks [][256]uint64, values [][256]float64) {
	marks, values = make([][256]uint64, len(integerTables)), make([][256]float64, len(integerTables))
	for _, f := range fp8.Formats() {
		for c := range 256 {
			n := integerTables[f][c]
			marks[f][c] = uint64(max(n, -n))
			if f.IsNaN(byte(c)) || f.IsInf(byte(c), 0) {
				marks[f][c] = specialMark
			}
			values[f][c] = math.Ldexp(float64(n), unit(f))
		}
	}
	return marks, values
}

// scan looks for special rows and how far codes spread.
func (s *side) scan(t *tensor.Tensor, lo, hi int) {
	s.special, s.widths = grow(s.special, hi-lo), grow(s.widths, hi-lo)
	for i := lo; i < hi; i++ {
		s.scanRow(t, i, i-lo)
	}
}

// scanRow is scan of row i, for place at.
func (s *side) scanRow(t *tensor.Tensor, i, at int) {
	mark := scanCodes(t.Row(i), &marks[t.Format])
	s.special[at] = mark&specialMark != 0 || hasNaN(t, i)
	s.widths[at] = spreadWidth(mark &^ specialMark)
}

// hasNaN reports whether a scale of row i is NaN, as only one that is encoded may be.
func hasNaN(t *tensor.Tensor, i int) bool {
	if !t.ScaleFormat.Encoded() {
		return false
	}
	height, _ := t.Block.Extents(t.Dims())
	return slices.ContainsFunc(t.ScaleRow(i/height), func(s float32) bool { return s != s })
}

// scanCodes returns all bits that magnitudes have, as integers.
func scanCodes(codes []byte, table *[256]uint64) (mark uint64) {
	for _, c := range codes {
		mark |= table[c]
	}
	return mark
}

// spreadWidth is the number of bits from the highest to the lowest of a spread. Magnitudes
// in which a subnormal is the least normal number have no more.
func spreadWidth(spread uint64) int {
	if spread == 0 {
		return 0
	}
	return bits.Len64(spread) - bits.TrailingZeros64(spread)
}

// decodeRows writes rows [lo, hi) of t by a table, with room for so many.
func decodeRows(dst []float64, t *tensor.Tensor, lo, hi, rows int, table *[256]float64) []float64 {
	_, k := t.Dims()
	dst = grow(dst, rows*k)
	for i := lo; i < hi; i++ {
		decodeRow(dst[(i-lo)*k:][:k], t.Row(i), table)
	}
	return dst
}

func decodeRow(row []float64, codes []byte, table *[256]float64) {
	codes = codes[:len(row)]
	for j := range row {
		row[j] = table[codes[j]]
	}
}

// decodePanel writes rows [lo, hi) of t, at most dots.Columns, as a panel's columns.
func decodePanel(dst []float64, t *tensor.Tensor, lo, hi int, table *[256]float64) []float64 {
	const together = 64 // products, whose part of the panel stays in the cache
	_, k := t.Dims()
	dst = grow(dst, k*dots.Columns)
	for from := 0; from < k; from += together {
		to := min(from+together, k)
		for i := lo; i < hi; i++ {
			part := dst[from*dots.Columns+i-lo : (to-1)*dots.Columns+i-lo+1]
			for j, c := range t.Row(i)[from:to] {
				part[j*dots.Columns] = table[c]
			}
		}
	}
	return dst
}

// decodeScales writes the scales of rows [lo, hi) for each block, that of row i and
// block q at (i-lo)·rowStride + q·blockStride. One that is NaN is 0.
func decodeScales(dst []float64, p *product, s *scales, lo, hi, rowStride, blockStride int) []float64 {
	blocks := p.blocks()
	dst = grow(dst, max(rowStride*(hi-lo), blockStride*blocks))
	for i := lo; i < hi; i++ {
		for q := range blocks {
			scale := float64(s.at(i, q*p.block))
			if scale != scale {
				scale = 0
			}
			dst[(i-lo)*rowStride+q*blockStride] = scale
		}
	}
	return dst
}
