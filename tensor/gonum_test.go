package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestMatrix compares a tensor as a gonum matrix with a dense copy.
func TestMatrix(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, b := range blocks {
		x := random(r, fp8.E4M3, b, 2, 5, 7)
		for i := range x.Codes {
			x.Codes[i] &= 0xBF // no NaN
		}
		values := make([]float64, 70)
		tensor.Dequantize(values, x)
		dense := mat.NewDense(10, 7, values)
		m := x.Matrix()
		require.True(t, mat.Equal(dense, m))
		require.True(t, mat.Equal(dense.T(), m.T()))
		require.True(t, mat.Equal(dense, m.T().T()))
		require.True(t, mat.Equal(dense, mat.DenseCopyOf(m)))

		var got, want mat.Dense
		got.Mul(m, m.T())
		want.Mul(dense, dense.T())
		require.True(t, mat.EqualApprox(&want, &got, 1e-12))

		x.Codes[3] ^= 0x80 // not a copy
		require.Equal(t, -values[3], m.At(0, 3))
	}
}

// TestMatrixExact checks that elements are not rounded to float32.
func TestMatrixExact(t *testing.T) {
	x := &tensor.Tensor{Shape: []int{1, 2}, Codes: []byte{0x39, 0x01}, Scales: []float32{1 + 0x1p-23}}
	require.Equal(t, 1.125*(1+0x1p-23), x.Matrix().At(0, 0))
	x.Scales[0] = math.SmallestNonzeroFloat32
	require.Equal(t, 0x1p-158, x.Matrix().At(0, 1))
}

func TestMatrixView(t *testing.T) {
	x := random(rand.New(rand.NewPCG(2, 2)), fp8.E4M3FNUZ, tensor.Block{Rows: 3, Cols: 4}, 9, 11)
	v, err := x.ColRange(4, 10)
	require.NoError(t, err)
	m := v.Matrix()
	rows, cols := m.Dims()
	require.Equal(t, []int{9, 6}, []int{rows, cols})
	require.NoError(t, differ(v, func(i, j int) float32 { return float32(m.At(i, j)) }))
}

func TestMatrixBounds(t *testing.T) {
	m := random(rand.New(rand.NewPCG(3, 3)), fp8.E4M3, tensor.Block{}, 3, 4).Matrix()
	for _, i := range []int{-1, 3, math.MinInt} {
		require.PanicsWithValue(t, mat.ErrRowAccess, func() { m.At(i, 0) })
	}
	for _, j := range []int{-1, 4, math.MaxInt} {
		require.PanicsWithValue(t, mat.ErrColAccess, func() { m.At(0, j) })
		require.PanicsWithValue(t, mat.ErrColAccess, func() { m.T().At(j, 0) })
	}
}

// TestQuantizeMatrix compares QuantizeMatrix with Quantize of the same values,
// from a dense matrix, its transpose and another tensor.
func TestQuantizeMatrix(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	values := mixed(r, 35, false)
	values[4] = 2.0000000000000004 * values[5] // not a float32
	dense := mat.NewDense(5, 7, values)
	transposed := mat.DenseCopyOf(dense.T())
	q := tensor.Quantizer{Scale: largest(fp8.E4M3)}
	for _, b := range blocks {
		for _, c := range []struct {
			m          mat.Matrix
			rows, cols int
			values     []float64
		}{
			{dense, 5, 7, values},
			{dense.T(), 7, 5, transposed.RawMatrix().Data},
		} {
			want := &tensor.Tensor{Name: "m", Shape: []int{c.rows, c.cols}, Block: b}
			require.NoError(t, tensor.Quantize(t.Context(), want, c.values, q))
			got := &tensor.Tensor{Name: "m", Shape: []int{2}, Block: b}
			require.NoError(t, tensor.QuantizeMatrix(t.Context(), got, c.m, q))
			require.Equal(t, want, got)

			again := &tensor.Tensor{Name: "m", Block: b}
			require.NoError(t, tensor.QuantizeMatrix(t.Context(), again, got.Matrix(), q))
			require.NoError(t, compareQuantized(again, mat.DenseCopyOf(got.Matrix()).RawMatrix().Data, q.Scale, q.Policy))
		}
	}
	var empty tensor.Tensor
	require.NoError(t, tensor.QuantizeMatrix(t.Context(), &empty, &mat.Dense{}, q))
	require.NoError(t, empty.Check())
	require.Equal(t, []int{0, 0}, empty.Shape)
}

func TestQuantizeMatrixError(t *testing.T) {
	x := random(rand.New(rand.NewPCG(5, 5)), fp8.E4M3, tensor.Block{}, 3)
	x.Block.Rows = -1
	before := snapshot(x)
	err := tensor.QuantizeMatrix(t.Context(), x, mat.NewDense(2, 2, nil), tensor.Quantizer{Scale: largest(fp8.E4M3)})
	require.EqualError(t, err, `tensor "x": block -1x0 has a negative extent`)
	require.Equal(t, before, snapshot(x))
}
