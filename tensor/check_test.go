package tensor_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

func TestCheck(t *testing.T) {
	whole := func() *tensor.Tensor {
		return &tensor.Tensor{Name: "w", Shape: []int{2, 3, 5}, Block: tensor.Block{Rows: 4, Cols: 2},
			Codes: make([]byte, 30), Scales: make([]float32, 6)}
	}
	require.NoError(t, whole().Check())
	for want, change := range map[string]func(x *tensor.Tensor){
		`tensor "w": unknown format Format(99)`:                                       func(x *tensor.Tensor) { x.Format = 99 },
		`tensor "w": block -1x2 has a negative extent`:                                func(x *tensor.Tensor) { x.Block.Rows = -1 },
		`tensor "w": block 4x-2 has a negative extent`:                                func(x *tensor.Tensor) { x.Block.Cols = -2 },
		`tensor "w": dimension 1 of shape [2 -3 5] is negative`:                       func(x *tensor.Tensor) { x.Shape[1] = -3 },
		`tensor "w": dimension 2 of shape [0 3 -5] is negative`:                       func(x *tensor.Tensor) { x.Shape[0], x.Shape[2] = 0, -5 },
		`tensor "w": shape [2 3 5] needs 30 codes, there are 29`:                      func(x *tensor.Tensor) { x.Codes = x.Codes[:29] },
		`tensor "w": shape [2 3 5] needs 30 codes, there are 31`:                      func(x *tensor.Tensor) { x.Codes = append(x.Codes, 0) },
		`tensor "w": shape [2 3 5] needs 30 codes, there are 0`:                       func(x *tensor.Tensor) { x.Codes = nil },
		`tensor "w": shape [2 0 5] needs 0 codes, there are 30`:                       func(x *tensor.Tensor) { x.Shape[1] = 0 },
		`tensor "w": shape [2 3 5] in blocks of 4x2 needs 2x3 scales, there are 5`:    func(x *tensor.Tensor) { x.Scales = x.Scales[:5] },
		`tensor "w": shape [2 3 5] in blocks of 4x2 needs 2x3 scales, there are 7`:    func(x *tensor.Tensor) { x.Scales = append(x.Scales, 0) },
		`tensor "w": shape [2 3 5] in blocks of tensor needs 1x1 scales, there are 6`: func(x *tensor.Tensor) { x.Block = tensor.Block{} },
		`tensor "w": shape [2 3 5] in blocks of row needs 6x1 scales, there are 0`:    func(x *tensor.Tensor) { x.Block, x.Scales = tensor.Block{Rows: 1}, nil },
	} {
		x := whole()
		change(x)
		require.EqualError(t, x.Check(), want)
	}
}

// TestCheckOverflow checks shapes whose number of elements is no int.
func TestCheckOverflow(t *testing.T) {
	const huge = math.MaxInt
	for _, shape := range [][]int{{huge, 2}, {huge, huge, huge}, {huge/2 + 1, 2}, {huge, 0, 2}, {2, huge, 0}, {huge, huge}} {
		x := &tensor.Tensor{Name: "w", Shape: shape}
		require.EqualError(t, x.Check(), fmt.Sprintf(`tensor "w": shape %v has too many elements`, shape))
		_, err := x.Reshape(shape...)
		require.ErrorContains(t, err, "has too many elements")
	}
	x := &tensor.Tensor{Name: "w", Shape: []int{huge}}
	require.EqualError(t, x.Check(), fmt.Sprintf(`tensor "w": shape [%d] needs %d codes, there are 0`, huge, huge))
}

// TestHugeEmpty checks that nothing loops over the rows of a matrix that has no
// columns, such as a file may declare.
func TestHugeEmpty(t *testing.T) {
	for _, b := range []tensor.Block{{}, {Rows: 1}, {Rows: 2, Cols: 3}} {
		x := &tensor.Tensor{Shape: []int{math.MaxInt, 0}, Block: b}
		require.NoError(t, x.Check())
		require.NoError(t, x.CheckScales())
		tensor.Dequantize([]float32{}, x)
		require.NoError(t, x.Transpose().Check())
		require.NoError(t, tensor.Quantize(t.Context(), x, []float32{}, tensor.Quantizer{Scale: largest(fp8.E4M3), Options: tensor.Options{Workers: 2}}))
	}
}

func TestCheckScales(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for text, bad := range map[string]float32{
		"NaN": nan, "+Inf": inf, "-Inf": -inf, "-1": -1, "-0": float32(math.Copysign(0, -1)), "-1e-45": -math.SmallestNonzeroFloat32,
	} {
		for k := range 6 {
			x := &tensor.Tensor{Name: "w", Shape: []int{2, 3, 5}, Block: tensor.Block{Rows: 4, Cols: 2},
				Codes: make([]byte, 30), Scales: []float32{1, 0, math.MaxFloat32, math.SmallestNonzeroFloat32, 1, 1}}
			require.NoError(t, x.CheckScales())
			x.Scales[k] = bad
			want := fmt.Sprintf(`tensor "w": scale of block (%d, %d) is %s: want a finite number that is not negative`, k/3, k%3, text)
			require.EqualError(t, x.CheckScales(), want)
			// The first one counts.
			x.Scales[5] = nan
			if k < 5 {
				require.EqualError(t, x.CheckScales(), want)
			}
			// Views count their own blocks, and no others.
			v, err := x.ColRange(2, 5)
			require.NoError(t, err)
			x.Scales[5] = 1
			x.Scales[k] = bad
			if k%3 == 0 {
				require.NoError(t, v.CheckScales())
			} else {
				require.ErrorContains(t, v.CheckScales(), fmt.Sprintf("block (%d, %d) is %s", k/3, k%3-1, text))
			}
		}
	}
}
