package fault

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// operand is a matrix as a kernel reads it: what it makes of a tensor's codes and
// scales.
type operand struct {
	t      *tensor.Tensor
	grid   grid       // of scales
	used   *[256]bool // the codes that there are
	rows   int
	k      int
	width  int // codes of a row that share a scale
	format fp8.Format
	codes  func(dst []byte, i int) // reads row i, of k codes; nil: the tensor's
	decode *decoded                // what codes are read as; nil: values of format
	scale  func(i, q int) float32  // of block q of row i; nil: the tensor's

	// The outer scale of row i; nil: the tensor's, if it has one. divide says that it is a
	// divisor, and noOuter that it is not read.
	outer   func(i int) float32
	divide  bool
	noOuter bool
}

// newOperand returns t as it should be read.
func newOperand(t *tensor.Tensor) operand {
	rows, k := t.Dims()
	_, width := t.Block.Extents(rows, k)
	used := new([256]bool)
	for i := range rows {
		for _, c := range t.Row(i) {
			used[c] = true
		}
	}
	return operand{t: t, grid: gridOf(t), used: used, rows: rows, k: k, width: width, format: t.Format, divide: t.Outer.Divide}
}

// decoded is what a kernel makes of each code.
type decoded struct{ values, magnitudes [256]float64 }

// values are those of the codes as they are read.
func (o *operand) values() *[256]float64 {
	if o.decode != nil {
		return &o.decode.values
	}
	return values(o.format)
}

// magnitudes are those of the finite values, see the function of that name.
func (o *operand) magnitudes(aligned bool) *[256]float64 {
	if o.decode != nil {
		return &o.decode.magnitudes
	}
	return magnitudes(o.format, aligned)
}

// row returns the codes of row i, in memory of the tensor or in buf.
func (o *operand) row(buf []byte, i int) []byte {
	if o.codes == nil {
		return o.t.Row(i)
	}
	buf = buf[:o.k]
	o.codes(buf, i)
	return buf
}

// scaleAt returns the scale of block q of row i.
func (o *operand) scaleAt(i, q int) float32 {
	if o.scale != nil {
		return o.scale(i, q)
	}
	return o.rightScale(i, q)
}

// rightScale is scaleAt of the tensor.
func (o *operand) rightScale(i, q int) float32 { return o.rightScales(i)[q] }

// rightScales are those of row i of the tensor.
func (o *operand) rightScales(i int) []float32 { return o.t.ScaleRow(i / o.grid.height) }

// valuesOf returns what the codes of row i of the tensor are.
func (o *operand) valuesOf(i int) []float64 {
	codes, of := o.t.Row(i), values(o.t.Format)
	row := make([]float64, len(codes))
	for k, c := range codes {
		row[k] = of[c]
	}
	return row
}

// blocks is the number of scales of a row.
func (o *operand) blocks() int { return (o.k + o.width - 1) / o.width }

// hasOuter reports whether outer scales are read.
func (o *operand) hasOuter() bool { return !o.noOuter && !o.t.Outer.None() }

// outerAt returns the outer scale of row i, which may be a divisor.
func (o *operand) outerAt(i int) float32 {
	if o.outer != nil {
		return o.outer(i)
	}
	return o.t.Outer.At(i)
}

// factor returns the outer scale of row i as a multiplier.
func (o *operand) factor(i int) float64 {
	switch {
	case !o.hasOuter():
		return 1
	case o.divide:
		return 1 / float64(o.outerAt(i))
	}
	return float64(o.outerAt(i))
}

// sameOuter reports whether outer scales are read as those of was.
func (o *operand) sameOuter(was *operand) bool {
	return o.t == was.t && o.outer == nil && o.divide == was.divide && o.noOuter == was.noOuter
}

// matrix returns the given rows as a tensor with a scale for each block of each row. A
// scale that is negative is its magnitude, with codes of the other sign.
func (o *operand) matrix(rows ...int) (*tensor.Tensor, error) {
	t := &tensor.Tensor{Name: o.t.Name, Format: o.format, Shape: []int{len(rows), o.k}, Block: tensor.Block{Rows: 1, Cols: o.width}}
	t.Codes = make([]byte, 0, len(rows)*o.k)
	t.Scales = make([]float32, 0, len(rows)*o.blocks())
	buf := make([]byte, o.k)
	for _, i := range rows {
		from := len(t.Codes)
		t.Codes = append(t.Codes, o.row(buf, i)...)
		for q := range o.blocks() {
			s := o.scaleAt(i, q)
			if s < 0 {
				s = -s
				negate(t.Codes[from+q*o.width:][:min(o.width, o.k-q*o.width)], o.format)
			}
			if math.IsInf(float64(s), 0) {
				return nil, sentinel.Errorf(ErrNotHere, "tensor %q: the scale of block %d of row %d would be %v", o.t.Name, q, i, s)
			}
			t.Scales = append(t.Scales, s+0) // and no -0
		}
		if o.hasOuter() && (o.t.Outer.Rows > 0 || len(t.Outer.Scales) == 0) {
			t.Outer.Scales = append(t.Outer.Scales, o.outerAt(i))
		}
	}
	if len(t.Outer.Scales) > 1 {
		t.Outer.Rows = 1
	}
	t.Outer.Divide = o.divide && !t.Outer.None()
	t.ScaleFormat = scaleFormat(t.Scales, o.t.ScaleFormat)
	if err := t.CheckScales(); err != nil {
		return nil, sentinel.Errorf(ErrNotHere, "%w", err)
	}
	return t, nil
}

// negate changes the signs of codes.
func negate(codes []byte, f fp8.Format) {
	for i, c := range codes {
		switch {
		case f.IsZero(c) || f.IsNaN(c):
		case f == fp8.MXINT8:
			codes[i] = -c
		default:
			codes[i] = c ^ 1<<(f.Bits()-1)
		}
	}
}

// scaleFormat returns the format of scales: the one that they should be of, or another
// that has them all.
func scaleFormat(scales []float32, should tensor.ScaleFormat) tensor.ScaleFormat {
	for _, f := range []tensor.ScaleFormat{should, tensor.Float32Scales, tensor.UE4M3Scales, tensor.E8M0Scales} {
		if !slices.ContainsFunc(scales, func(s float32) bool { return !f.Holds(s) }) {
			return f
		}
	}
	return tensor.Float32Scales
}

// all returns the whole matrix.
func (o *operand) all() (*tensor.Tensor, error) {
	if o.codes == nil && o.decode == nil && o.scale == nil && o.format == o.t.Format && o.outer == nil && !o.noOuter && o.divide == o.t.Outer.Divide {
		return o.t, nil
	}
	return o.matrix(identity(o.rows)...)
}

// grid is an operand's scales, for a fault that reads others of them.
type grid struct {
	t          *tensor.Tensor
	height     int // rows of the matrix under a scale
	rows, cols int
	bytes      *[256]bool // codes that there are of scales in E8M0
}

func gridOf(t *tensor.Tensor) grid {
	rows, k := t.Dims()
	height, _ := t.Block.Extents(rows, k)
	g := grid{t: t, height: height}
	g.rows, g.cols = t.Grid()
	g.bytes = new([256]bool)
	for r := 0; r < g.rows && t.ScaleFormat == tensor.E8M0Scales; r++ {
		for _, s := range t.ScaleRow(r) {
			g.bytes[codeOfE8M0(s)] = true
		}
	}
	return g
}

// beyond is what a kernel reads before the beginning of a grid of scales and beyond its
// end.
type beyond uint8

const (
	wrapped beyond = iota // what is at the other end
	clamped               // the nearest row
	zeroed                // 0, as TMA fills what is out of bounds
	unknown               // something: unknownScale
)

// unknownScale stands for a scale of which nothing is known. It is a NaN, but not the one
// that an encoded scale may be.
var unknownScale = math.Float32frombits(0x7FC0BAD5)

func isUnknown(s float32) bool { return math.Float32bits(s) == math.Float32bits(unknownScale) }

// read returns scale n of the grid, row by row.
func (g *grid) read(n int, out beyond) float32 {
	size := g.rows * g.cols
	if n < 0 || n >= size {
		switch out {
		case zeroed:
			return 0
		case unknown:
			return unknownScale
		case wrapped:
			n = (n%size + size) % size
		case clamped:
			col := (n%g.cols + g.cols) % g.cols
			if n >= size {
				col += size - g.cols
			}
			n = col
		}
	}
	return g.t.ScaleRow(n / g.cols)[n%g.cols]
}

// every reports whether all scales are as is says.
func (g *grid) every(is func(s float32) bool) bool {
	for r := range g.rows {
		if slices.ContainsFunc(g.t.ScaleRow(r), func(s float32) bool { return !is(s) }) {
			return false
		}
	}
	return true
}

// uniform reports whether all scales are equal.
func (g *grid) uniform() bool {
	first := g.t.ScaleRow(0)[0]
	return g.every(func(s float32) bool { return s == first })
}
