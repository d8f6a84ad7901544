package tensor_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestViews takes views of views, at random, and compares each with the part of
// the matrix that it is.
func TestViews(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	extents := []int{0, 1, 2, 3, 5, 7, 50}
	refused := 0
	for range 3000 {
		b := tensor.Block{Rows: extents[r.IntN(len(extents))], Cols: extents[r.IntN(len(extents))]}
		base := random(r, fp8.E4M3, b, 1+r.IntN(20), 1+r.IntN(20))
		want := valuesOf(base)
		v, i0, j0 := base, 0, 0
		for depth := range 4 {
			rows, cols := v.Dims()
			var lo, hi int
			var err error
			var next *tensor.Tensor
			if r.IntN(2) == 0 {
				lo, hi = between(r, rows)
				if next, err = v.RowRange(lo, hi); offBlock(lo, hi, rows, b.Rows) {
					require.EqualError(t, err, fmt.Sprintf("tensor %q: row %d is inside a block: views start at multiples of %d", "x", lo, b.Rows))
					refused++
					continue
				}
				i0, rows = i0+lo, hi-lo
			} else {
				lo, hi = between(r, cols)
				if next, err = v.ColRange(lo, hi); offBlock(lo, hi, cols, b.Cols) {
					require.EqualError(t, err, fmt.Sprintf("tensor %q: column %d is inside a block: views start at multiples of %d", "x", lo, b.Cols))
					refused++
					continue
				}
				j0, cols = j0+lo, hi-lo
			}
			require.NoError(t, err)
			v = next
			require.Equal(t, []int{rows, cols}, v.Shape)
			require.NoError(t, v.Check())
			require.NoError(t, v.CheckScales())
			if err := checkView(v, base, i0, j0, want); err != nil {
				t.Fatalf("%v, depth %d, [%d:%d]x[%d:%d] of %v: %v", b, depth, i0, i0+rows, j0, j0+cols, base.Shape, err)
			}
		}
	}
	require.Greater(t, refused, 100)
}

func between(r *rand.Rand, n int) (lo, hi int) {
	lo = r.IntN(n + 1)
	return lo, lo + r.IntN(n-lo+1)
}

func offBlock(lo, hi, size, extent int) bool {
	return lo < hi && extent != 0 && extent < size && lo%extent != 0
}

func checkView(v, base *tensor.Tensor, i0, j0 int, want func(i, j int) float32) error {
	if err := differ(v, from(i0, j0, want)); err != nil {
		return err
	}
	if err := compareDequantizedView(v); err != nil {
		return err
	}
	rows, cols := v.Dims()
	_, baseCols := base.Dims()
	for i := range rows {
		row, scales := v.Row(i), v.ScaleRow(0)
		if len(row) != cols || cap(row) != cols || cap(scales) != len(scales) {
			return fmt.Errorf("row %d of %d codes, capacity %d; scales %d, capacity %d", i, len(row), cap(row), len(scales), cap(scales))
		}
		if cols > 0 && &row[0] != &base.Codes[(i0+i)*baseCols+j0] {
			return fmt.Errorf("row %d does not share memory", i)
		}
	}
	if cap(v.Codes) != len(v.Codes) || cap(v.Scales) != len(v.Scales) {
		return fmt.Errorf("appending would overwrite what is behind the view")
	}
	return nil
}

func compareDequantizedView(v *tensor.Tensor) error {
	_, cols := v.Dims()
	got := make([]float32, v.Len())
	tensor.Dequantize(got, v)
	return differ(v, func(i, j int) float32 { return got[i*cols+j] })
}

func TestViewRanges(t *testing.T) {
	x := random(rand.New(rand.NewPCG(2, 2)), fp8.E4M3, tensor.Block{Rows: 2, Cols: 2}, 2, 3, 5)
	for _, c := range [][2]int{{-1, 2}, {0, 7}, {4, 3}, {7, 7}} {
		_, err := x.RowRange(c[0], c[1])
		require.EqualError(t, err, fmt.Sprintf("tensor %q: rows [%d, %d) are outside shape [2 3 5]", "x", c[0], c[1]))
	}
	for _, c := range [][2]int{{-1, 2}, {0, 6}, {4, 3}, {6, 6}} {
		_, err := x.ColRange(c[0], c[1])
		require.EqualError(t, err, fmt.Sprintf("tensor %q: columns [%d, %d) are outside shape [2 3 5]", "x", c[0], c[1]))
	}
}

func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, b := range []tensor.Block{{}, {Rows: 1}, {Rows: 6, Cols: 2}, {Rows: 3, Cols: 128}, {Rows: 2, Cols: 1}, {Rows: 100, Cols: 3}} {
		x := random(r, fp8.E5M2FNUZ, b, 4, 6, 5)
		for e := range 4 {
			v, err := x.Index(e)
			require.NoError(t, err)
			require.Equal(t, []int{6, 5}, v.Shape)
			require.NoError(t, checkView(v, x, 6*e, 0, valuesOf(x)))
		}
	}
	x := random(r, fp8.E4M3, tensor.Block{Rows: 3}, 2, 3, 4, 5)
	v, err := x.Index(1)
	require.NoError(t, err)
	require.Equal(t, []int{3, 4, 5}, v.Shape)
	v, err = v.Index(2)
	require.EqualError(t, err, `tensor "x": row 8 is inside a block: views start at multiples of 3`)
	require.Nil(t, v)
	for _, i := range []int{-1, 2} {
		_, err = x.Index(i)
		require.EqualError(t, err, fmt.Sprintf("tensor %q: index %d is outside the first dimension of shape [2 3 4 5]", "x", i))
	}
	for _, shape := range [][]int{{}, {3}, {3, 4}} {
		_, err = random(r, fp8.E4M3, tensor.Block{}, shape...).Index(0)
		require.EqualError(t, err, fmt.Sprintf("tensor %q: shape %v has no leading dimension to index: want rank 3 or more", "x", shape))
	}
}

func TestReshape(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	x := random(r, fp8.E4M3, tensor.Block{Rows: 5, Cols: 3}, 2, 3, 4, 7)
	for _, shape := range [][]int{{24, 7}, {6, 4, 7}, {1, 1, 24, 7}, {2, 3, 4, 7}} {
		v, err := x.Reshape(shape...)
		require.NoError(t, err)
		require.Equal(t, shape, v.Shape)
		require.NoError(t, checkView(v, x, 0, 0, valuesOf(x)))
	}
	for _, shape := range [][]int{{7, 24}, {23, 7}, {168}, {}, {0, 7}} {
		_, err := x.Reshape(shape...)
		require.EqualError(t, err, fmt.Sprintf("tensor %q: cannot reshape [2 3 4 7] in blocks of 5x3 to %v: "+
			"the last dimension and the number of elements must stay", "x", shape))
	}
	_, err := x.Reshape(-24, -7)
	require.EqualError(t, err, `tensor "x": dimension 0 of shape [-24 -7] is negative`)

	one := random(r, fp8.E4M3, tensor.Block{}, 2, 6)
	for _, shape := range [][]int{{12}, {3, 4}, {12, 1}, {3, 2, 2}} {
		v, err := one.Reshape(shape...)
		require.NoError(t, err)
		require.NoError(t, v.Check())
		require.Equal(t, one.Codes, v.Codes)
	}
	// Columns left out: rows can no longer be joined.
	v, err := one.ColRange(0, 3)
	require.NoError(t, err)
	_, err = v.Reshape(6)
	require.ErrorContains(t, err, `tensor "x": cannot reshape`)
	v, err = v.Reshape(2, 1, 3)
	require.NoError(t, err)
	require.NoError(t, checkView(v, one, 0, 0, valuesOf(one)))
}

// TestEmptyViews reads empty views of tensors with several rows of blocks.
func TestEmptyViews(t *testing.T) {
	x := random(rand.New(rand.NewPCG(5, 5)), fp8.E4M3, tensor.Block{Rows: 2, Cols: 3}, 7, 8)
	for _, cut := range []func(*tensor.Tensor) (*tensor.Tensor, error){
		func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.ColRange(4, 4) },
		func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.ColRange(8, 8) },
		func(x *tensor.Tensor) (*tensor.Tensor, error) { return x.RowRange(3, 3) },
	} {
		v, err := cut(x)
		require.NoError(t, err)
		require.NoError(t, v.Check())
		require.NoError(t, v.CheckScales())
		require.Zero(t, v.Len())
		rows, _ := v.Dims()
		for i := range rows {
			require.Empty(t, v.Row(i))
			require.Empty(t, v.ScaleRow(i/2))
		}
		tensor.Dequantize([]float32{}, v)
		require.NoError(t, v.Transpose().Check())
		w, err := cut(&tensor.Tensor{Shape: []int{8, 8}, Codes: make([]byte, 64), Scales: []float32{1}})
		require.NoError(t, err)
		require.NoError(t, w.Check())
	}
}

// TestViewOfBrokenTensor checks that no view is cut from a tensor that is not
// whole.
func TestViewOfBrokenTensor(t *testing.T) {
	x := &tensor.Tensor{Name: "short", Shape: []int{2, 3, 4}, Codes: make([]byte, 23), Scales: []float32{1}}
	const want = `tensor "short": shape [2 3 4] needs 24 codes, there are 23`
	_, err := x.RowRange(0, 6)
	require.EqualError(t, err, want)
	_, err = x.ColRange(0, 4)
	require.EqualError(t, err, want)
	_, err = x.Index(1)
	require.EqualError(t, err, want)
}

// TestQuantizeView checks that quantizing into a view with gaps does not touch
// what lies in them.
func TestQuantizeView(t *testing.T) {
	x := random(rand.New(rand.NewPCG(6, 6)), fp8.E4M3, tensor.Block{Rows: 2, Cols: 2}, 6, 8)
	before := snapshot(x)
	v, err := x.ColRange(2, 6)
	require.NoError(t, err)
	src := convert[float32](mixed(rand.New(rand.NewPCG(7, 7)), v.Len(), false))
	require.NoError(t, tensor.Quantize(t.Context(), v, src, tensor.Quantizer{Scale: largest(fp8.E4M3)}))
	require.NoError(t, compareQuantized(v, src, largest(fp8.E4M3), fp8.Policy{}))
	require.Equal(t, before, snapshot(x))
}

// A view gets memory of its own when something is quantized into it: under
// another block the parent's scales would not fit.
func TestQuantizeIntoAView(t *testing.T) {
	one := func(int, float32, bool) fp8.Scale { return fp8.Scale{} }
	x := &tensor.Tensor{Name: "x", Shape: []int{2, 2}}
	require.NoError(t, tensor.Quantize(t.Context(), x, []float32{1, 2, 3, 4}, tensor.Quantizer{Scale: one}))
	rows, err := x.RowRange(1, 2)
	require.NoError(t, err)
	cols, err := x.ColRange(1, 2)
	require.NoError(t, err)
	flat, err := x.Reshape(4)
	require.NoError(t, err)
	for _, v := range []*tensor.Tensor{rows, cols, flat} {
		require.NoError(t, tensor.Quantize(t.Context(), v, make([]float32, v.Len()), tensor.Quantizer{
			Scale: func(int, float32, bool) fp8.Scale { return fp8.Scale{Stored: 1024} },
		}))
		require.Equal(t, float32(1024), v.Scale(0, 0))
		require.Equal(t, float32(4), x.At(1, 1))
	}
}

func TestReshapeUnderOneScale(t *testing.T) {
	x := &tensor.Tensor{Name: "x", Shape: []int{2, 3}, Block: tensor.Block{Rows: 128, Cols: 128}, Codes: []byte{56, 64, 68, 72, 74, 76}, Scales: []float32{2}}
	v, err := x.Reshape(3, 2)
	require.NoError(t, err)
	require.NoError(t, v.Check())
	require.Equal(t, x.At(1, 0), v.At(1, 1))
	all, err := x.ColRange(0, 3)
	require.NoError(t, err)
	v, err = all.Reshape(6, 1)
	require.NoError(t, err)
	require.NoError(t, v.Check())
	require.Equal(t, x.At(1, 2), v.At(5, 0))
}
