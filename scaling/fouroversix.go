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

// pick returns the scale of a block of rows of at most 16 values.
func (c *fourOverSix) pick(b block16, amax float32, l level) fp8.Scale {
	six, four := c.scales(amax, l)
	if c.loss(&b, four, l) < c.loss(&b, six, l) {
		return four
	}
	return six
}

// loss is the error of a block under a scale.
func (c *fourOverSix) loss(b *block16, s fp8.Scale, l level) float32 {
	// What the magnitudes of E2M1 stand for, in units of what is compared.
	var values [8]float32
	for code := range values {
		v := float32(fp8E2M1[code] * s.Stored)
		if !c.fast {
			v = float32(v*l.amax) / c.denominator
		}
		values[code] = v
	}
	unit := float32(1)
	if c.fast {
		unit = l.encode
	}
	var rows [tile16]float32
	for i := range b.rows {
		rows[i] = c.rowLoss(b.values[i][:b.cols], &values, s, unit)
	}
	for half := tile16 / 2; half > 0; half /= 2 {
		for i := range half {
			if c.rule == largestError {
				rows[i] = max(rows[i], rows[i+half])
			} else {
				rows[i] += rows[i+half]
			}
		}
	}
	return rows[0]
}

func (c *fourOverSix) rowLoss(row []float32, values *[8]float32, s fp8.Scale, unit float32) (sum float32) {
	for _, x := range row {
		magnitude := math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
		y := magnitude * s.Multiplier
		if s.Multiplier == 0 {
			y = magnitude / s.Divisor
		}
		d := values[e2m1Magnitude(y)] - float32(magnitude*unit)
		switch c.rule {
		case meanSquare:
			sum += float32(d * d)
		case meanAbsolute:
			sum += math.Float32frombits(math.Float32bits(d) &^ (1 << 31))
		default:
			sum = max(sum, math.Float32frombits(math.Float32bits(d)&^(1<<31)))
		}
	}
	return sum
}

// fp8E2M1 are the magnitudes of E2M1.
var fp8E2M1 = [8]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}

// e2m1Magnitude rounds y, which is not negative, to the nearest magnitude of E2M1, ties to
// even, and returns its code: 0 for a NaN.
func e2m1Magnitude(y float32) int {
	switch y = float32(y); {
	case y >= 6:
		return 7
	case y < 1:
		const magic = 0x1p22 // its last place is 0.5
		return int(math.Float32bits(y+magic) - math.Float32bits(magic))
	case y != y:
		return 0
	}
	const dropped = 22
	bits := math.Float32bits(y)
	bits += 1<<(dropped-1) - 1 + bits>>dropped&1
	return int(bits>>dropped) - 126<<1
}

// block16 is a block's values as float32.
type block16 struct {
	values     [tile16][tile16]float32
	rows, cols int
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

// block returns the values of a block.
func (g *grid) block(index int) (b block16) {
	i0, j0 := index/g.gridCols*g.blockRows, index%g.gridCols*g.blockCols
	b.rows, b.cols = min(g.blockRows, g.rows-i0), min(g.blockCols, g.cols-j0)
	for i := range b.rows {
		g.source.copyTo(b.values[i][:b.cols], (i0+i)*g.cols+j0)
	}
	return b
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
	switch {
	case s.float32s != nil:
		copy(dst, s.float32s[at:])
	case s.float64s != nil:
		for i := range dst {
			dst[i] = float32(s.float64s[at+i])
		}
	case s.float16s != nil:
		for i := range dst {
			dst[i] = s.float16s[at+i].Float32()
		}
	default:
		for i := range dst {
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
