package tensor

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/octavo-fp8/octavo/fp8"
)

// Tensor is an array of FP8 values. It is built by [Quantize], or as a literal
// from codes and scales that come from elsewhere; [Tensor.Check] tells whether
// such a literal is whole. A Tensor may be read by many goroutines at once.
type Tensor struct {
	Name   string // for errors and telemetry; may be empty
	Format fp8.Format
	Shape  []int
	Block  Block
	Codes  []byte    // row-major
	Scales []float32 // dequantization scales, row-major over the grid of blocks

	// Distance between rows of codes and of scales in a view that leaves out
	// columns; 0 where rows follow each other.
	stride, scaleStride int
	shared              bool // the memory is that of another tensor
}

// Dims returns the size of the matrix that t is seen as.
func (t *Tensor) Dims() (rows, cols int) { return matrixDims(t.Shape) }

func matrixDims(shape []int) (rows, cols int) {
	if len(shape) == 0 {
		return 1, 1
	}
	last := len(shape) - 1
	rows, cols = 1, shape[last]
	for _, n := range shape[:last] {
		rows *= n
	}
	return rows, cols
}

// Len returns the number of elements.
func (t *Tensor) Len() int {
	rows, cols := t.Dims()
	return rows * cols
}

// Grid returns the number of scales along the rows and the columns.
func (t *Tensor) Grid() (rows, cols int) { return t.Block.Grid(t.Dims()) }

// Row returns the codes of a row of the matrix; it shares t's memory.
func (t *Tensor) Row(i int) []byte {
	_, cols := t.Dims()
	stride := t.stride
	if stride == 0 {
		stride = cols
	}
	return t.Codes[i*stride : i*stride+cols : i*stride+cols]
}

// ScaleRow returns the scales of a row of the grid; it shares t's memory.
func (t *Tensor) ScaleRow(i int) []float32 {
	_, cols := t.Grid()
	stride := t.scaleStride
	if stride == 0 {
		stride = cols
	}
	return t.Scales[i*stride : i*stride+cols : i*stride+cols]
}

// Scale returns the scale of the element at row i, column j of the matrix.
func (t *Tensor) Scale(i, j int) float32 {
	r, c := t.Block.Extents(t.Dims())
	return t.ScaleRow(i / r)[j/c]
}

// At returns the value of the element at row i, column j of the matrix, rounded
// to float32 once.
func (t *Tensor) At(i, j int) float32 { return at[float32](t, i, j) }

func at[T fp8.Float](t *Tensor, i, j int) T {
	var v [1]T
	fp8.DecodeScaled(v[:], t.Row(i)[j:j+1], t.Format, t.Scale(i, j))
	return v[0]
}

// Check reports whether format, shape, block, codes and scales fit together. It
// does not look at values; see [Tensor.CheckScales].
func (t *Tensor) Check() error {
	if err := t.checkForm(); err != nil {
		return err
	}
	rows, cols := t.Dims()
	if want := span(rows, cols, t.stride); len(t.Codes) < want || t.stride == 0 && len(t.Codes) != want {
		return fmt.Errorf("tensor %q: shape %v needs %d codes, there are %d", t.Name, t.Shape, want, len(t.Codes))
	}
	gridRows, gridCols := t.Grid()
	if want := span(gridRows, gridCols, t.scaleStride); len(t.Scales) < want || t.scaleStride == 0 && len(t.Scales) != want {
		return fmt.Errorf("tensor %q: shape %v in blocks of %v needs %dx%d scales, there are %d",
			t.Name, t.Shape, t.Block, gridRows, gridCols, len(t.Scales))
	}
	return nil
}

// checkForm checks what a tensor must know before it holds anything.
func (t *Tensor) checkForm() error {
	if !t.Format.Valid() {
		return fmt.Errorf("tensor %q: unknown format %v", t.Name, t.Format)
	}
	if t.Block.Rows < 0 || t.Block.Cols < 0 {
		return fmt.Errorf("tensor %q: block %dx%d has a negative extent", t.Name, t.Block.Rows, t.Block.Cols)
	}
	elements := uint64(1)
	for i, n := range t.Shape {
		if n < 0 {
			return fmt.Errorf("tensor %q: dimension %d of shape %v is negative", t.Name, i, t.Shape)
		}
		// An empty tensor must have countable rows and columns as well.
		var carry uint64
		carry, elements = bits.Mul64(elements, uint64(max(n, 1)))
		if carry != 0 || elements > math.MaxInt {
			return fmt.Errorf("tensor %q: shape %v has too many elements", t.Name, t.Shape)
		}
	}
	return nil
}

// span is the length that n rows of a given width need.
func span(rows, cols, stride int) int {
	if stride == 0 {
		stride = cols
	}
	if rows == 0 || cols == 0 {
		return 0
	}
	return (rows-1)*stride + cols
}

// CheckScales returns an error that names the first block whose scale is NaN,
// infinite or negative, -0 included. A scale of +0 is allowed.
func (t *Tensor) CheckScales() error {
	rows, cols := t.Grid()
	if cols == 0 {
		return nil
	}
	for i := range rows {
		for j, s := range t.ScaleRow(i)[:cols] {
			if math.Float32bits(s) >= math.Float32bits(float32(math.Inf(1))) {
				return fmt.Errorf("tensor %q: scale of block (%d, %d) is %v: want a finite number that is not negative", t.Name, i, j, s)
			}
		}
	}
	return nil
}
