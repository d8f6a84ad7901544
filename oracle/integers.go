package oracle

import (
	"math"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/tensor"
)

// Every finite code is an integer times the least subnormal of its format, MXINT8's
// being 2^-6: below 2^33 for the E5M2 formats, and up to 2^18 for all others.

// unit returns the exponent of f's least subnormal.
func unit(f fp8.Format) int { return 1 - f.Bias() - f.Mantissa() }

// integerTables lists the codes of each format in that unit; a code that is not
// finite is 0.
var integerTables = makeIntegerTables()

func makeIntegerTables() [][256]int64 {
	tables := make([][256]int64, len(fp8.Formats()))
	for _, f := range fp8.Formats() {
		for c := range 256 {
			if v := float64(f.Float32(byte(c))); number.IsFinite(v) {
				tables[f][c] = int64(math.Ldexp(v, -unit(f)))
			}
		}
	}
	return tables
}

// wide reports whether f's integers are too long for products of two in 63 bits.
func wide(f fp8.Format) bool { return f == fp8.E5M2 || f == fp8.E5M2FNUZ }

// splitBits is where wide integers of A are cut in two, so that either part times
// a wide integer of B has 17 + 33 bits.
const splitBits = 16

// pieceLength is the number of products that an int64 sum surely holds: 2^12 of
// below 2^51.
const pieceLength = 1 << 12

// integers are rows of a matrix as integers. low is the rest of rows that are
// split: value = rows·2^16 + low.
type integers struct {
	t         *tensor.Tensor
	lo, k     int
	rows, low []int64
	special   []bool // by row: has a NaN or an infinity
	known     []bool // by row: was read
}

// decode reads rows [lo, hi) of t.
func (v *integers) decode(t *tensor.Tensor, lo, hi int, split bool) {
	v.begin(t, lo, hi, split)
	for i := range hi - lo {
		v.need(i)
	}
}

// begin makes room for rows [lo, hi) of t, for need to read.
func (v *integers) begin(t *tensor.Tensor, lo, hi int, split bool) {
	_, v.k = t.Dims()
	n := (hi - lo) * v.k
	v.t, v.lo = t, lo
	v.rows, v.special, v.known = grow(v.rows, n), grow(v.special, hi-lo), grow(v.known, hi-lo)
	clear(v.known)
	v.low = v.low[:0]
	if split {
		v.low = grow(v.low, n)
	}
}

// need reads row i unless it is known.
func (v *integers) need(i int) {
	if v.known[i] {
		return
	}
	v.known[i] = true
	codes, table := v.t.Row(v.lo+i), &integerTables[v.t.Format]
	row := v.rows[i*v.k:][:v.k]
	v.special[i] = scanCodes(codes, &marks[v.t.Format])&specialMark != 0
	for j, c := range codes {
		row[j] = table[c]
	}
	if len(v.low) > 0 {
		low := v.low[i*v.k:][:v.k]
		for j, x := range row {
			row[j], low[j] = x>>splitBits, x&(1<<splitBits-1)
		}
	}
}

// integerStrips are a tile's rows of A and of B.
type integerStrips struct{ a, b integers }

var integerPool = sync.Pool{New: func() any { return new(integerStrips) }}

// dot returns the sum of products [lo, hi), at most pieceLength, of row i of v
// and row j of w.
func (v *integers) dot(w *integers, i, j, lo, hi int) int128 {
	y := w.rows[j*v.k+lo : j*v.k+hi]
	high := dotIntegers(v.rows[i*v.k+lo:i*v.k+hi], y)
	if len(v.low) == 0 {
		return int128{high >> 63, uint64(high)}
	}
	return join(high, dotIntegers(v.low[i*v.k+lo:i*v.k+hi], y))
}

func dotIntegers(x, y []int64) int64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 int64
	for len(x) >= 4 && len(y) >= 4 {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		s0 += v * y[i]
	}
	return s0 + s1 + s2 + s3
}

func grow[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }
