package tensor

import (
	"math"
	"math/bits"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Tensor is an array of values in a format of at most eight bits. It is built by [Quantize], or as a literal
// from codes and scales that come from elsewhere; [Tensor.Check] tells whether
// its parts fit together. The zero Tensor is a scalar without its code, ready to be
// given a shape and quantized. A Tensor may be read by many goroutines at once.
type Tensor struct {
	Name   string // for errors and telemetry; may be empty
	Format fp8.Format
	Shape  []int
	Block  Block
	Codes  []byte    // row-major
	Scales []float32 // dequantization scales, row-major over the grid of blocks

	// ScaleFormat says how Scales are encoded where they are kept; here they are decoded
	// in any case. The zero value is float32.
	ScaleFormat ScaleFormat

	// Outer are the scales above Scales, as of NVFP4. The zero value is none.
	Outer Outer

	// Stride is the distance, in Codes, from the start of one row of the matrix to
	// the start of the next, and ScaleStride that from row to row of the grid in
	// Scales. 0, as [Quantize] leaves them, means that rows follow each other without
	// a gap; in a view such as [Tensor.ColRange] they do not. See [Tensor.Strides].
	Stride, ScaleStride int

	shared bool // the memory is that of another tensor
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

// Strides returns the distances from row to row in Codes and in Scales: Stride and
// ScaleStride or, where those are 0, the number of columns of the matrix and of the
// grid. Row i of the matrix is Codes[i*codes:][:cols].
func (t *Tensor) Strides() (codes, scales int) {
	codes, scales = t.Stride, t.ScaleStride
	if codes == 0 {
		_, codes = t.Dims()
	}
	if scales == 0 {
		_, scales = t.Grid()
	}
	return codes, scales
}

// Row returns the codes of row i of the matrix, which share t's memory. It panics
// if there is no such row or t is too short for it.
func (t *Tensor) Row(i int) []byte {
	rows, cols := t.Dims()
	return row(t.Codes, i, rows, cols, t.Stride)
}

// ScaleRow returns the scales of row i of the grid, which share t's memory. It
// panics if there is no such row or t is too short for it.
func (t *Tensor) ScaleRow(i int) []float32 {
	rows, cols := t.Grid()
	return row(t.Scales, i, rows, cols, t.ScaleStride)
}

// mustBeWhole is Check for functions that return no error.
func (t *Tensor) mustBeWhole() {
	if t == nil || t.Check() != nil {
		panic(notWhole)
	}
}

const notWhole = "tensor: format, shape, block, codes and scales do not fit together; see Check"

const noRow = "tensor: there is no such row"

// row is row i, of n rows, of a matrix in s.
func row[T any](s []T, i, n, cols, stride int) []T {
	if stride == 0 {
		stride = cols
	}
	if uint(i) >= uint(n) || cols < 0 || stride < 0 {
		panic(noRow)
	}
	overflow, first := bits.Mul64(uint64(i), uint64(stride))
	if overflow != 0 || uint64(cols) > uint64(len(s)) || first > uint64(len(s)-cols) {
		panic(noRow)
	}
	return s[first:][:cols:cols]
}

// Scale returns the scale of the block of the element at row i, column j of the matrix,
// without that above it; see [Outer.At]. It panics if there is no such element or t is
// too short for it.
func (t *Tensor) Scale(i, j int) float32 {
	rows, cols := t.Dims()
	if i < 0 || i >= rows || j < 0 || j >= cols {
		panic(noElement)
	}
	r, c := t.Block.Extents(rows, cols)
	return t.ScaleRow(i / r)[j/c]
}

const noElement = "tensor: there is no such element"

// At returns the value of the element at row i, column j of the matrix, rounded
// to float32 once. It panics as [Tensor.Scale] and [Outer.At] do, and if t's format is
// unknown.
func (t *Tensor) At(i, j int) float32 { return at[float32](t, i, j) }

func at[T fp8.Float](t *Tensor, i, j int) T {
	var v [1]T
	scale := t.Scale(i, j)
	decode(v[:], t, t.Row(i)[j:j+1], scale, i)
	return v[0]
}

// Check reports whether format, shape, block, codes and scales fit together. It
// does not look at values; see [Tensor.CheckScales].
func (t *Tensor) Check() error {
	if err := t.CheckShape(); err != nil {
		return err
	}
	rows, cols := t.Dims()
	if err := t.checkStride("codes", t.Stride, rows, cols); err != nil {
		return err
	}
	if want := span(rows, cols, t.Stride); len(t.Codes) < want || t.Stride == 0 && len(t.Codes) != want {
		return t.shapeError("shape %v needs %d codes, there are %d", t.Shape, want, len(t.Codes))
	}
	gridRows, gridCols := t.Grid()
	if err := t.checkStride("scales", t.ScaleStride, gridRows, gridCols); err != nil {
		return err
	}
	if want := span(gridRows, gridCols, t.ScaleStride); len(t.Scales) < want || t.ScaleStride == 0 && len(t.Scales) != want {
		return t.shapeError("shape %v in blocks of %v needs %dx%d scales, there are %d",
			t.Shape, t.Block, gridRows, gridCols, len(t.Scales))
	}
	return t.checkOuter(t.Outer)
}

// checkStride checks the distance between n rows of codes or scales.
func (t *Tensor) checkStride(what string, stride, n, cols int) error {
	switch {
	case stride == 0:
	case stride < cols:
		return t.shapeError("stride %d of %s is less than the %d of a row", stride, what, cols)
	case n > 1 && n-1 > (math.MaxInt-cols)/stride:
		return t.shapeError("stride %d of %s is too large for %d rows", stride, what, n)
	}
	return nil
}

func (t *Tensor) shapeError(format string, args ...any) error {
	return sentinel.Errorf(ErrShape, "tensor %q: "+format, append([]any{t.Name}, args...)...)
}

// CheckShape checks what t must say before it can be quantized: its format, block and
// shape. Codes and scales may be missing.
func (t *Tensor) CheckShape() error {
	if !t.Format.Valid() {
		return sentinel.Errorf(fp8.ErrFormat, "tensor %q: unknown format %v", t.Name, t.Format)
	}
	if !t.ScaleFormat.Valid() {
		return sentinel.Errorf(ErrScale, "tensor %q: unknown format of scales %v", t.Name, t.ScaleFormat)
	}
	if t.Block.Rows < 0 || t.Block.Cols < 0 {
		return t.shapeError("block %dx%d has a negative extent", t.Block.Rows, t.Block.Cols)
	}
	elements := uint64(1)
	for i, n := range t.Shape {
		if n < 0 {
			return t.shapeError("dimension %d of shape %v is negative", i, t.Shape)
		}
		// An empty tensor must have countable rows and columns as well.
		var carry uint64
		carry, elements = bits.Mul64(elements, uint64(max(n, 1)))
		if carry != 0 || elements > math.MaxInt {
			return t.shapeError("shape %v has too many elements", t.Shape)
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

// CheckScales returns an error, [ErrScale], that names the first block whose scale
// [ScaleFormat.Holds] says cannot be: a float32 scale that is NaN, infinite or negative,
// -0 included, or an encoded one that its format lacks. A float32 scale of +0 is allowed,
// and so is an encoded NaN. Then it checks outer scales: they are float32 scales, and a
// divisor is not 0. First it checks what [Tensor.Check] does.
func (t *Tensor) CheckScales() error {
	if err := t.Check(); err != nil {
		return err
	}
	rows, cols := t.Grid()
	if cols == 0 {
		rows = 0
	}
	for i := range rows {
		for j, s := range t.ScaleRow(i)[:cols] {
			if !t.ScaleFormat.Holds(s) {
				return sentinel.Errorf(ErrScale, "tensor %q: scale of block (%d, %d) is %v: want %s", t.Name, i, j, s, t.ScaleFormat.wants())
			}
		}
	}
	return t.checkOuterScales()
}
