package scaling

import (
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/fouroversix"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/tensor"
)

// fourOverSix chooses between two scales of a block (arXiv 2512.02010): one that makes its
// largest value 6 and one, half as large again, that makes it 4, so that 5, which E2M1
// lacks, is not needed. The one with the smaller error is taken, the first where they
// are equal.
//
// Errors are in float32, of one value after the other along a row, and those of rows are
// added as a tree: row i and i+8, then i+4, i+2, i+1. That is TransformerEngine's order;
// that of fouroversix is PyTorch's, which is not defined.
type fourOverSix struct {
	six, four underLevel
	rule      fouroversix.Rule

	// Of v, a code's value, and x: ((v*s)*amax)/denominator - x or, with fast, v*s -
	// x*encode.
	denominator float32
	fast        bool
}

// error is how errors are found under an outer scale.
func (c *fourOverSix) error(l level) fouroversix.Error {
	if c.fast {
		return fouroversix.Error{Rule: c.rule, Amax: 1, Denominator: 1, Unit: l.encode}
	}
	return fouroversix.Error{Rule: c.rule, Amax: l.amax, Denominator: c.denominator, Unit: 1}
}

// tile16 is the largest extent of a block that fourOverSix takes.
const tile16 = fouroversix.Size

// pick returns the scale of a block of at most 16 rows of at most 16 values.
func (c *fourOverSix) pick(g *grid, block int, amax float32, l level) fp8.Scale {
	at, e := g.block(block), c.error(l)
	six, four := c.six.scale(amax, limits{level: l}), c.four.scale(amax, limits{level: l})
	var errors [tile16]fouroversix.Losses
	var buffer [tile16 * tile16]float32
	values, stride := g.values(at, &buffer)
	both := bothOf(six.Stored, six.Multiplier, four.Stored, four.Multiplier)
	fouroversix.Rows(errors[:at.rows], values, stride, at.cols, []fouroversix.Scales{both}, &e)
	if at.rows > 1 {
		errors[0] = total(&errors, c.rule)
	}
	if errors[0][1] < errors[0][0] {
		return four
	}
	return six
}

// bothOf are the numbers that errors follow from. To multiply by 0 is to divide by infinity.
func bothOf(stored6, multiplier6, stored4, multiplier4 float32) fouroversix.Scales {
	return fouroversix.Scales{Stored: [2]float32{stored6, stored4}, Multiplier: [2]float32{multiplier6, multiplier4}}
}

// pickRow sets the scales of blocks from the given one on, with those amaxes.
func (c *fourOverSix) pickRow(g *grid, block int, stored, factors, amax []float32, l level) {
	for n := 0; len(amax) > 0; block, stored, factors, amax = block+n, stored[n:], factors[n:], amax[n:] {
		if n = min(g.inLine(block), len(amax), lineBlocks); n < 2 {
			s := c.pick(g, block, amax[0], l)
			stored[0], factors[0], n = s.Stored, s.Multiplier, 1
		} else {
			c.pickLine(g, block, stored[:n], factors[:n], amax[:n], l)
		}
	}
}

// lineBlocks is the most blocks of pickLine.
const lineBlocks = 16 * tile16

// pickLine is pickRow of blocks of 16 values each, that lie behind each other.
func (c *fourOverSix) pickLine(g *grid, block int, stored, factors, amax []float32, l level) {
	var buffers [2][lineBlocks]float32
	stored4 := kernels.NoEscapeSlice(buffers[0][:len(amax)])
	factors4 := kernels.NoEscapeSlice(buffers[1][:len(amax)])
	c.six.row(stored, factors, amax, limits{level: l})
	c.four.row(stored4, factors4, amax, limits{level: l})
	e := c.error(l)
	var buffer [tile16 * tile16]float32
	var both [tile16]fouroversix.Scales
	var errors [tile16]fouroversix.Losses
	for lo := 0; lo < len(amax); lo += tile16 {
		n := min(tile16, len(amax)-lo)
		for i := range n {
			both[i] = bothOf(stored[lo+i], factors[lo+i], stored4[lo+i], factors4[lo+i])
		}
		at := g.block(block + lo)
		at.cols *= n
		values, _ := g.values(at, &buffer)
		fouroversix.Rows(errors[:n], values, tile16, tile16, both[:n], &e)
		for i, of := range errors[:n] {
			if of[1] < of[0] {
				stored[lo+i], factors[lo+i] = stored4[lo+i], factors4[lo+i]
			}
		}
	}
}

// total is the error of a block, from those of its rows, which it overwrites.
func total(rows *[tile16]fouroversix.Losses, rule fouroversix.Rule) fouroversix.Losses {
	for half := tile16 / 2; half > 0; half /= 2 {
		for i := range half {
			for k, other := range rows[i+half] {
				if rule == fouroversix.Largest {
					rows[i][k] = max(rows[i][k], other)
				} else {
					rows[i][k] += other
				}
			}
		}
	}
	return rows[0]
}

// grid are a tensor's values and how they are cut into blocks.
type grid struct {
	source     source
	rows, cols int // of the matrix
	blockRows  int
	blockCols  int
	gridCols   int
}

func (g *grid) set(t *tensor.Tensor, s source) {
	g.source = s
	g.rows, g.cols = t.Dims()
	g.blockRows, g.blockCols = t.Block.Extents(g.rows, g.cols)
	_, g.gridCols = t.Grid()
}

// region is where a block lies.
type region struct{ i0, j0, rows, cols int }

func (g *grid) block(index int) region {
	i0, j0 := index/g.gridCols*g.blockRows, index%g.gridCols*g.blockCols
	return region{i0, j0, min(g.blockRows, g.rows-i0), min(g.blockCols, g.cols-j0)}
}

// inLine returns how many blocks of one row, from the given one on, have 16 values each and
// lie behind each other.
func (g *grid) inLine(block int) int {
	switch {
	case g.blockRows != 1 || g.blockCols != tile16:
		return 0
	case g.cols%tile16 == 0:
		return g.rows*g.gridCols - block
	}
	return g.cols/tile16 - block%g.gridCols // the last of a row is shorter
}

// values returns those of a region, of at most 256, as float32, and how far its rows are
// apart: from the tensor's values, or in buffer.
func (g *grid) values(at region, buffer *[tile16 * tile16]float32) (values []float32, stride int) {
	first := at.i0*g.cols + at.j0
	if g.source.float32s != nil {
		return g.source.float32s[first:], g.cols
	}
	for i := range at.rows {
		g.source.copyTo(buffer[i*at.cols:][:at.cols], first+i*g.cols)
	}
	return buffer[:], at.cols
}

// source are the values of a tensor, in one of four types.
type source struct {
	float32s  []float32
	float64s  []float64
	float16s  []float16.Float16
	bfloat16s []fp8.BFloat16
}

func sourceOf[T fp8.Float](values []T) (s source) {
	switch values := any(values).(type) {
	case []float32:
		s.float32s = values
	case []float64:
		s.float64s = values
	case []float16.Float16:
		s.float16s = values
	case []fp8.BFloat16:
		s.bfloat16s = values
	}
	return s
}

// amax returns the largest magnitude of values [lo, hi), and whether one is NaN.
func (s *source) amax(lo, hi int) (float32, bool) {
	switch {
	case s.float32s != nil:
		return fp8.Amax(s.float32s[lo:hi])
	case s.float64s != nil:
		return fp8.Amax(s.float64s[lo:hi])
	case s.float16s != nil:
		return fp8.Amax(s.float16s[lo:hi])
	}
	return fp8.Amax(s.bfloat16s[lo:hi])
}

// copyTo writes the values from the given one on to dst, rounded to float32.
func (s *source) copyTo(dst []float32, at int) {
	switch n := len(dst); {
	case s.float64s != nil:
		for i, x := range s.float64s[at:][:n] {
			dst[i] = float32(x)
		}
	case s.float16s != nil:
		halves.Widen(dst, s.float16s[at:][:n])
	default:
		halves.Widen(dst, s.bfloat16s[at:][:n])
	}
}

// teFourOverSix is _quantize_blockwise_4over6_reference of TransformerEngine's
// reference_nvfp4.py.
func teFourOverSix(rule fouroversix.Rule, largest float32, fast bool) *fourOverSix {
	six := underLevel{divisor: maxE2M1, factor: encoding, policy: saturating, of: teScale}
	four := six
	four.expand = 1.5
	return &fourOverSix{six, four, rule, maxE2M1 * largest, fast}
}

// fourOverSixChoice is select_fouroversix of fouroversix' reference.py, where a code above
// 6 does not saturate; here it does.
func fourOverSixChoice(rule fouroversix.Rule) *fourOverSix {
	return &fourOverSix{fourOverSixUnder(maxE2M1, 0), fourOverSixUnder(maxE2M1, 1.5), rule, maxE2M1 * 256, false}
}
