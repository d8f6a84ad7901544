package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestStrides reads a matrix out of the middle of a larger one, as a literal.
func TestStrides(t *testing.T) {
	whole := random(rand.New(rand.NewPCG(8, 8)), fp8.E4M3, tensor.Block{Rows: 2, Cols: 3}, 7, 12)
	part := &tensor.Tensor{Format: whole.Format, Shape: []int{5, 4}, Block: whole.Block,
		Codes: whole.Codes[2*12+3:], Stride: 12, Scales: whole.Scales[1*4+1:], ScaleStride: 4}
	require.NoError(t, part.Check())
	require.NoError(t, differ(part, from(2, 3, valuesOf(whole))))
	codes, scales := part.Strides()
	require.Equal(t, [2]int{12, 4}, [2]int{codes, scales})
	codes, scales = whole.Strides()
	require.Equal(t, [2]int{12, 4}, [2]int{codes, scales})

	v, err := whole.ColRange(3, 7)
	require.NoError(t, err)
	v, err = v.RowRange(2, 7)
	require.NoError(t, err)
	require.Equal(t, [2]int{12, 4}, [2]int{v.Stride, v.ScaleStride})
	require.NoError(t, differ(v, from(2, 3, valuesOf(whole))))

	// The rows of a view may end where the memory does.
	part.Codes = part.Codes[:4*12+4]
	require.NoError(t, part.Check())
	part.Codes = part.Codes[:4*12+3]
	require.EqualError(t, part.Check(), `tensor "": shape [5 4] needs 52 codes, there are 51`)
}

func TestCheckStrides(t *testing.T) {
	for want, change := range map[string]func(x *tensor.Tensor){
		`tensor "w": stride 4 of codes is less than the 5 of a row`:                             func(x *tensor.Tensor) { x.Stride = 4 },
		`tensor "w": stride -5 of codes is less than the 5 of a row`:                            func(x *tensor.Tensor) { x.Stride = -5 },
		`tensor "w": shape [6 5] needs 35 codes, there are 30`:                                  func(x *tensor.Tensor) { x.Stride = 6 },
		`tensor "w": stride 2 of scales is less than the 3 of a row`:                            func(x *tensor.Tensor) { x.ScaleStride = 2 },
		`tensor "w": shape [6 5] in blocks of 4x2 needs 2x3 scales, there are 6`:                func(x *tensor.Tensor) { x.ScaleStride = 4 },
		fmt.Sprintf(`tensor "w": stride %d of codes is too large for 6 rows`, math.MaxInt):      func(x *tensor.Tensor) { x.Stride = math.MaxInt },
		fmt.Sprintf(`tensor "w": stride %d of scales is too large for 2 rows`, math.MaxInt):     func(x *tensor.Tensor) { x.ScaleStride = math.MaxInt },
		fmt.Sprintf(`tensor "w": stride %d of scales is less than the 3 of a row`, math.MinInt): func(x *tensor.Tensor) { x.ScaleStride = math.MinInt },
	} {
		x := &tensor.Tensor{Name: "w", Shape: []int{6, 5}, Block: tensor.Block{Rows: 4, Cols: 2}, Codes: make([]byte, 30), Scales: make([]float32, 6)}
		change(x)
		err := x.Check()
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, tensor.ErrShape)
	}
}

// TestQuantizeLeavesGaps checks that a tensor with gaps between its rows becomes
// dense and leaves what lies in the gaps alone.
func TestQuantizeLeavesGaps(t *testing.T) {
	memory := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	x := &tensor.Tensor{Shape: []int{2, 3}, Codes: memory, Stride: 4, Scales: []float32{1}}
	require.NoError(t, tensor.Quantize(t.Context(), x, make([]float32, 6), tensor.Quantizer{Scale: largest(fp8.E4M3)}))
	require.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8}, memory)
	require.Zero(t, x.Stride)
	require.NoError(t, x.Check())
}
