package tensor

// Transpose returns the transposed matrix as a new tensor of shape
// [columns, rows]: the same values, none rounded again. Its blocks are
// transposed as well, so what was 1x128 becomes 128x1, which package gemm
// cannot sum along, while 128x128 stays as it is: a weight in square blocks
// serves the forward product and, transposed, the input gradient. Where blocks
// do not allow it, quantize the transposed values instead. It panics if t does not
// pass its Check. It takes no context, since it only moves bytes: a second is enough
// for hundreds of megabytes.
//
// Outer scales belong to rows, so that it panics if there are several: one for the tensor
// stays as it is.
func (t *Tensor) Transpose() *Tensor {
	t.mustBeWhole()
	if !t.Outer.single() {
		panic(outerOfRows)
	}
	rows, cols := t.Dims()
	gridRows, gridCols := t.Grid()
	v := &Tensor{
		Name: t.Name, Format: t.Format, Shape: []int{cols, rows}, Block: t.Block.Transposed(),
		Codes: make([]byte, rows*cols), Scales: make([]float32, gridRows*gridCols),
		ScaleFormat: t.ScaleFormat, Outer: t.Outer.clone(),
	}
	v.Outer.Rows = 0
	if len(v.Codes) == 0 {
		return v
	}
	codeStride, scaleStride := t.Strides()
	transpose(v.Codes, t.Codes, rows, cols, codeStride)
	transpose(v.Scales, t.Scales, gridRows, gridCols, scaleStride)
	return v
}

const outerOfRows = "tensor: outer scales of rows cannot be transposed: requantize with one for the tensor"

// transpose writes the columns of src, a matrix with rows a stride apart, to dst as
// rows. It does so by way of a small square, so that lines of the cache are read and
// written as a whole, also where rows are a power of two apart.
func transpose[T any](dst, src []T, rows, cols, stride int) {
	const side = 64
	var square [side][side]T
	for i0 := 0; i0 < rows; i0 += side {
		i1 := min(i0+side, rows)
		for j0 := 0; j0 < cols; j0 += side {
			j1 := min(j0+side, cols)
			for i := i0; i < i1; i++ {
				for j, x := range src[i*stride+j0 : i*stride+j1] {
					square[j][i-i0] = x
				}
			}
			for j := j0; j < j1; j++ {
				copy(dst[j*rows+i0:j*rows+i1], square[j-j0][:])
			}
		}
	}
}
