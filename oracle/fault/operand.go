package fault

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// operand is a matrix as a kernel reads it: what it makes of a tensor's codes and
// scales.
type operand struct {
	t      *tensor.Tensor
	rows   int
	k      int
	width  int // codes of a row that share a scale
	format fp8.Format
	codes  func(dst []byte, i int) // reads row i, of k codes; nil: the tensor's
	scale  func(i, q int) float32  // of block q of row i; nil: the tensor's
}

// newOperand returns t as it should be read.
func newOperand(t *tensor.Tensor) operand {
	rows, k := t.Dims()
	_, width := t.Block.Extents(rows, k)
	return operand{t: t, rows: rows, k: k, width: width, format: t.Format}
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
func (o *operand) rightScale(i, q int) float32 {
	rows, k := o.t.Dims()
	height, _ := o.t.Block.Extents(rows, k)
	return o.t.ScaleRow(i / height)[q]
}

// blocks is the number of scales of a row.
func (o *operand) blocks() int { return (o.k + o.width - 1) / o.width }

// matrix returns the given rows as a tensor with a scale for each block of each row.
func (o *operand) matrix(rows ...int) (*tensor.Tensor, error) {
	t := &tensor.Tensor{Name: o.t.Name, Format: o.format, Shape: []int{len(rows), o.k}, Block: tensor.Block{Rows: 1, Cols: o.width}}
	t.Codes = make([]byte, 0, len(rows)*o.k)
	t.Scales = make([]float32, 0, len(rows)*o.blocks())
	buf := make([]byte, o.k)
	for _, i := range rows {
		t.Codes = append(t.Codes, o.row(buf, i)...)
		for q := range o.blocks() {
			s := o.scaleAt(i, q)
			if !(s >= 0) || math.IsInf(float64(s), 0) {
				return nil, sentinel.Errorf(ErrNotHere, "tensor %q: the scale of block %d of row %d would be %v", o.t.Name, q, i, s)
			}
			t.Scales = append(t.Scales, s)
		}
	}
	return t, nil
}

// all returns the whole matrix.
func (o *operand) all() (*tensor.Tensor, error) {
	if o.codes == nil && o.scale == nil && o.format == o.t.Format {
		return o.t, nil
	}
	rows := make([]int, o.rows)
	for i := range rows {
		rows[i] = i
	}
	return o.matrix(rows...)
}

// grid is an operand's scales, for a fault that reads others of them.
type grid struct {
	t          *tensor.Tensor
	height     int // rows of the matrix under a scale
	rows, cols int
}

func gridOf(t *tensor.Tensor) grid {
	rows, k := t.Dims()
	height, _ := t.Block.Extents(rows, k)
	g := grid{t: t, height: height}
	g.rows, g.cols = t.Grid()
	return g
}

// beyond is what a kernel reads before the beginning of a grid of scales and beyond its
// end.
type beyond uint8

const (
	wrapped beyond = iota // what is at the other end
	clamped               // the nearest row
	zeroed                // 0, as TMA fills what is out of bounds
	unknown               // something: NaN
)

// read returns scale n of the grid, row by row.
func (g *grid) read(n int, out beyond) float32 {
	size := g.rows * g.cols
	if n < 0 || n >= size {
		switch out {
		case zeroed:
			return 0
		case unknown:
			return float32(math.NaN())
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

// uniform reports whether all scales are equal.
func (g *grid) uniform() bool {
	first := g.t.ScaleRow(0)[0]
	for r := range g.rows {
		for _, s := range g.t.ScaleRow(r) {
			if s != first {
				return false
			}
		}
	}
	return true
}
