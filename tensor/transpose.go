package tensor

// Transpose returns the transposed matrix as a new tensor of shape
// [columns, rows]: the same values, none rounded again. Its blocks are
// transposed as well, so what was 1x128 becomes 128x1, which package gemm
// cannot sum along, while 128x128 stays as it is: a weight in square blocks
// serves the forward product and, transposed, the input gradient. Where blocks
// do not allow it, quantize the transposed values instead. It panics if t does not
// pass its Check.
func (t *Tensor) Transpose() *Tensor {
	t.mustBeWhole()
	rows, cols := t.Dims()
	gridRows, gridCols := t.Grid()
	v := &Tensor{
		Name: t.Name, Format: t.Format, Shape: []int{cols, rows}, Block: t.Block.Transposed(),
		Codes: make([]byte, rows*cols), Scales: make([]float32, gridRows*gridCols),
	}
	if len(v.Codes) == 0 {
		return v
	}
	for i := range rows {
		for j, c := range t.Row(i) {
			v.Codes[j*rows+i] = c
		}
	}
	for i := range gridRows {
		for j, s := range t.ScaleRow(i) {
			v.Scales[j*gridRows+i] = s
		}
	}
	return v
}
