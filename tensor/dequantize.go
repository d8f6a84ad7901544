package tensor

import "github.com/octavo-fp8/octavo/fp8"

const shortDestination = "tensor: destination is not as long as the tensor's shape says"

// Dequantize writes the values of t, row-major and dense, to dst: decode(code)
// times scale, rounded once to float32 (float64 holds it exactly) and then to
// T where that is narrower. It panics if t does not pass its Check or dst is not of
// t's length. It takes no context: it reads one byte for each value, a few
// milliseconds for a million; give it [Tensor.RowRange]s of a tensor of billions.
func Dequantize[T fp8.Float](dst []T, t *Tensor) {
	t.mustBeWhole()
	rows, cols := t.Dims()
	if len(dst) != rows*cols {
		panic(shortDestination)
	}
	if len(dst) == 0 {
		return
	}
	blockRows, blockCols := t.Block.Extents(rows, cols)
	for i := range rows {
		codes, scales := t.Row(i), t.ScaleRow(i/blockRows)
		for j := 0; j < cols; j += blockCols {
			end := min(j+blockCols, cols)
			fp8.DecodeScaled(dst[i*cols+j:i*cols+end], codes[j:end], t.Format, scales[j/blockCols])
		}
	}
}
