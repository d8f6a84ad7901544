package scaling

import (
	"math"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
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
	scales func(amax float32, l level) (six, four fp8.Scale)
	rule   errorRule

	// Of v, a code's value, and x: ((v*s)*amax)/denominator - x or, with fast, v*s -
	// x*encode.
	denominator float32
	fast        bool
}

// errorRule is how the errors of values become that of a block.
type errorRule uint8

const (
	meanAbsolute errorRule = iota // sums of magnitudes
	meanSquare
	largestError
)

// tile16 is the largest extent of a block that fourOverSix takes.
const tile16 = 16

// pick returns the scale of a block of at most 16 rows of at most 16 values.
func (c *fourOverSix) pick(g *grid, block int, amax float32, l level) fp8.Scale {
	six, four := c.scales(amax, l)
	of6, of4 := c.candidate(six, l), c.candidate(four, l)
	var rows6, rows4 [tile16]float32
	var buffer [tile16]float32
	at := g.block(block)
	for i := range at.rows {
		row := g.row(at, i, &buffer)
		rows6[i], rows4[i] = of6.loss(row, c.rule), of4.loss(row, c.rule)
	}
	if at.rows == 1 {
		if rows4[0] < rows6[0] {
			return four
		}
		return six
	}
	if c.rule.total(&rows4) < c.rule.total(&rows6) {
		return four
	}
	return six
}

// candidate is one of the scales that fourOverSix chooses between.
type candidate struct {
	values     [8]float32 // what the magnitudes of E2M1 stand for, in units of what is compared
	multiplier float32
	unit       float32 // of what is compared
}

func (c *fourOverSix) candidate(s fp8.Scale, l level) (of candidate) {
	of.multiplier, of.unit = s.Multiplier, 1 // multiplying by 0 is dividing by infinity
	if c.fast {
		of.unit = l.encode
	}
	for code, v := range e2m1Magnitudes {
		v = float32(v * s.Stored)
		if !c.fast {
			v = float32(v*l.amax) / c.denominator
		}
		of.values[code] = v
	}
	return of
}

// loss is the error of a row of a block.
func (of *candidate) loss(row []float32, rule errorRule) (loss float32) {
	var errors [tile16]float32
	const magnitude = 1<<31 - 1
	for i, x := range row[:min(len(row), tile16)] {
		x = math.Float32frombits(math.Float32bits(x) & magnitude)
		errors[i] = of.values[e2m1Code(x*of.multiplier)&7] - float32(x*of.unit)
	}
	switch rule {
	case meanSquare:
		for _, d := range errors {
			loss += float32(d * d)
		}
	case meanAbsolute:
		for _, d := range errors {
			loss += math.Float32frombits(math.Float32bits(d) & magnitude)
		}
	default:
		for _, d := range errors {
			loss = max(loss, math.Float32frombits(math.Float32bits(d)&magnitude))
		}
	}
	return loss
}

// total is the error of a block, from those of its rows, which it overwrites.
func (r errorRule) total(rows *[tile16]float32) float32 {
	for half := tile16 / 2; half > 0; half /= 2 {
		for i := range half {
			if r == largestError {
				rows[i] = max(rows[i], rows[i+half])
			} else {
				rows[i] += rows[i+half]
			}
		}
	}
	return rows[0]
}

// e2m1Magnitudes are those of E2M1, by code.
var e2m1Magnitudes = [8]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}

// e2m1Code rounds y, which is not negative, to the nearest magnitude of E2M1, ties to
// even, and returns its code. What adding a number leaves in the last places counts steps:
// of 0.5 below 2, of 1 below 4, and of 2.
func e2m1Code(y float32) uint32 {
	const one = 127 // exponent field
	y = float32(y)
	field := min(max(math.Float32bits(y)>>23, one), one+2)
	magic := (field + 22) << 23
	steps := math.Float32bits(y+math.Float32frombits(magic)) - magic
	return min(steps+2*(field-one), 7)
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

// row returns row i of a block as float32: from the tensor's values, or in buffer.
func (g *grid) row(at region, i int, buffer *[tile16]float32) []float32 {
	first := (at.i0+i)*g.cols + at.j0
	if g.source.float32s != nil {
		return g.source.float32s[first:][:at.cols]
	}
	row := buffer[:at.cols]
	g.source.copyTo(row, first)
	return row
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

// copyTo writes the values from the given one on to dst, rounded to float32.
func (s *source) copyTo(dst []float32, at int) {
	for i := range dst {
		switch {
		case s.float64s != nil:
			dst[i] = float32(s.float64s[at+i])
		case s.float16s != nil:
			dst[i] = s.float16s[at+i].Float32()
		default:
			dst[i] = s.bfloat16s[at+i].Float32()
		}
	}
}

// teFourOverSix is _quantize_blockwise_4over6_reference of TransformerEngine's
// reference_nvfp4.py.
func teFourOverSix(rule errorRule, largest float32, fast bool) *fourOverSix {
	return &fourOverSix{rule: rule, fast: fast, denominator: maxE2M1 * largest, scales: func(amax float32, l level) (six, four fp8.Scale) {
		s := float32(amax/maxE2M1) * l.encode
		return teScale(s, l), teScale(float32(s)*1.5, l)
	}}
}

// fourOverSixChoice is select_fouroversix of fouroversix' reference.py, where a code above
// 6 does not saturate; here it does.
func fourOverSixChoice(rule errorRule) *fourOverSix {
	return &fourOverSix{rule: rule, denominator: maxE2M1 * 256, scales: func(amax float32, l level) (six, four fp8.Scale) {
		return fourOverSixScale(amax, maxE2M1, 1, l), fourOverSixScale(amax, maxE2M1, 1.5, l)
	}}
}
