package tensor

import "github.com/octavo-fp8/octavo/internal/sentinel"

// RowRange returns rows [lo, hi) of the matrix as a tensor of rank 2 that
// shares t's memory. lo must be where a block starts.
func (t *Tensor) RowRange(lo, hi int) (*Tensor, error) {
	rows, cols := t.Dims()
	block, err := t.cut("row", lo, hi, rows, t.Block.Rows)
	if err != nil {
		return nil, err
	}
	outer, ok := t.Outer.slice(lo, hi)
	if !ok {
		return nil, sentinel.Errorf(ErrBlock, "tensor %q: row %d shares an outer scale with rows before it: views start at multiples of %d", t.Name, lo, t.Outer.Rows)
	}
	_, gridCols := t.Grid()
	v := t.matrix(hi-lo, cols)
	v.Outer = outer
	v.Codes = window(t.Codes, lo, hi-lo, cols, v.Stride)
	v.Scales = window(t.Scales, lo/block, ceilDiv(hi-lo, block), gridCols, v.ScaleStride)
	return v, nil
}

// ColRange returns columns [lo, hi) of the matrix as a tensor of rank 2 that
// shares t's memory. lo must be where a block starts.
func (t *Tensor) ColRange(lo, hi int) (*Tensor, error) {
	rows, cols := t.Dims()
	block, err := t.cut("column", lo, hi, cols, t.Block.Cols)
	if err != nil {
		return nil, err
	}
	gridRows, gridCols := t.Grid()
	v := t.matrix(rows, hi-lo)
	if lo == hi {
		v.Stride, v.ScaleStride = 0, 0
		return v, nil
	}
	if v.Stride == 0 {
		v.Stride = cols
	}
	if v.ScaleStride == 0 {
		v.ScaleStride = gridCols
	}
	_, viewCols := v.Grid()
	v.Codes = tail(t.Codes, lo, span(rows, hi-lo, v.Stride))
	v.Scales = tail(t.Scales, lo/block, span(gridRows, viewCols, v.ScaleStride))
	return v, nil
}

// Index returns element i of the first dimension, such as one expert's matrix
// of weights, as a tensor that shares t's memory and has one dimension less. It
// must start where a block starts.
func (t *Tensor) Index(i int) (*Tensor, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	if len(t.Shape) < 3 {
		return nil, sentinel.Errorf(ErrShape, "tensor %q: shape %v has no leading dimension to index: want rank 3 or more", t.Name, t.Shape)
	}
	if i < 0 || i >= t.Shape[0] {
		return nil, sentinel.Errorf(ErrShape, "tensor %q: index %d is outside the first dimension of shape %v", t.Name, i, t.Shape)
	}
	rows, _ := matrixDims(t.Shape[1:])
	v, err := t.RowRange(i*rows, (i+1)*rows)
	if err != nil {
		return nil, err
	}
	v.Shape = t.Shape[1:]
	return v, nil
}

// Reshape returns t with another shape, sharing its memory. The last dimension
// must stay, since scales are cut along it, unless one scale covers a dense
// tensor.
func (t *Tensor) Reshape(shape ...int) (*Tensor, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	v := *t
	v.Shape, v.shared = shape, true
	if err := v.CheckShape(); err != nil {
		return nil, err
	}
	_, cols := t.Dims()
	oldCols := cols
	_, newCols := v.Dims()
	gridRows, gridCols := t.Grid()
	if gridRows*gridCols == 1 && (t.Stride == 0 || t.Stride == cols) {
		v.Block, v.Stride = Block{}, 0
		cols = newCols
	}
	if v.Len() != t.Len() || newCols != cols {
		return nil, sentinel.Errorf(ErrShape, "tensor %q: cannot reshape %v in blocks of %v to %v: the last dimension and the number of elements must stay",
			t.Name, t.Shape, t.Block, shape)
	}
	if v.Outer.single() {
		v.Outer.Rows = 0
	} else if newCols != oldCols {
		return nil, sentinel.Errorf(ErrShape, "tensor %q: cannot reshape %v to %v: outer scales of rows go with the last dimension", t.Name, t.Shape, shape)
	}
	if err := v.checkOuter(v.Outer); err != nil {
		return nil, err
	}
	return &v, nil
}

// cut checks t, and a range against a dimension and the extent of its blocks,
// which it returns.
func (t *Tensor) cut(what string, lo, hi, size, extent int) (int, error) {
	if err := t.Check(); err != nil {
		return 0, err
	}
	if lo < 0 || hi < lo || hi > size {
		return 0, sentinel.Errorf(ErrShape, "tensor %q: %ss [%d, %d) are outside shape %v", t.Name, what, lo, hi, t.Shape)
	}
	block := clip(extent, size)
	if extent == 0 || extent >= size {
		// One block spans the dimension: its scale goes with any part.
		return max(size, 1), nil
	}
	if lo%block != 0 && lo < hi {
		return 0, sentinel.Errorf(ErrBlock, "tensor %q: %s %d is inside a block: views start at multiples of %d", t.Name, what, lo, block)
	}
	return block, nil
}

// matrix returns a tensor like t of the given size, without codes and scales.
func (t *Tensor) matrix(rows, cols int) *Tensor {
	return &Tensor{Name: t.Name, Format: t.Format, Block: t.Block, Shape: []int{rows, cols},
		Stride: t.Stride, ScaleStride: t.ScaleStride, ScaleFormat: t.ScaleFormat, Outer: t.Outer, shared: true}
}

// window is the part of s that holds n rows from the given one.
func window[T any](s []T, first, n, cols, stride int) []T {
	if stride == 0 {
		stride = cols
	}
	return tail(s, first*stride, span(n, cols, stride))
}

func tail[T any](s []T, from, n int) []T {
	if n == 0 {
		return nil
	}
	return s[from : from+n : from+n]
}
