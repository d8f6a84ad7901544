package tensor_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestDequantize compares Dequantize and At with code times scale.
func TestDequantize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, f := range fp8.Formats() {
		for _, shape := range shapes {
			rows, cols := matrixOf(shape)
			if testing.Short() && rows*cols > 1000 && f != fp8.E4M3 {
				continue
			}
			for _, b := range blocks {
				x := random(r, f, b, shape...)
				require.NoError(t, x.Check())
				require.NoError(t, differ(x, valuesOf(x)))
				if err := compareDequantized(x); err != nil {
					t.Fatalf("%v, shape %v, block %v: %v", f, shape, b, err)
				}
			}
		}
	}
}

func compareDequantized(x *tensor.Tensor) error {
	rows, cols := x.Dims()
	value := valuesOf(x)
	f32, f64 := make([]float32, x.Len()), make([]float64, x.Len())
	f16, bf16 := make([]float16.Float16, x.Len()), make([]fp8.BFloat16, x.Len())
	tensor.Dequantize(f32, x)
	tensor.Dequantize(f64, x)
	tensor.Dequantize(f16, x)
	tensor.Dequantize(bf16, x)
	for i := range rows {
		for j := range cols {
			k, v := i*cols+j, value(i, j)
			exact := float64(x.Format.Float32(x.Codes[k])) * float64(x.Scale(i, j))
			switch {
			case math.Signbit(float64(f32[k])) != math.Signbit(float64(x.At(i, j))) || math.Signbit(f64[k]) != math.Signbit(float64(f32[k])):
				return fmt.Errorf("sign of %v, %v and %v", f32[k], f64[k], x.At(i, j)) // of NaN too
			case !same(float64(f32[k]), float64(v)):
				return fmt.Errorf("float32 %d: got %v, want %v", k, f32[k], v)
			case !same(f64[k], exact):
				return fmt.Errorf("float64 %d: got %v, want %v", k, f64[k], exact)
			case !same(wide(f16[k]), wide(float16.Fromfloat32(v))):
				return fmt.Errorf("float16 %d: got %v, want %v", k, f16[k], v)
			case !same(wide(bf16[k]), wide(fp8.BFloat16FromFloat32(v))):
				return fmt.Errorf("bfloat16 %d: got %v, want %v", k, wide(bf16[k]), v)
			}
		}
	}
	return nil
}

// TestRoundTrip checks that values that are codes times a power of two come
// back as they were.
func TestRoundTrip(t *testing.T) {
	for _, f := range fp8.Formats() {
		var src []float32
		for code := range 256 {
			if v := f.Float32(byte(code)); !math.IsInf(float64(v), 0) && v == v {
				src = append(src, v*8)
			}
		}
		x := &tensor.Tensor{Format: f, Shape: []int{len(src)}, Block: tensor.Block{Cols: 7}}
		require.NoError(t, tensor.Quantize(t.Context(), x, src, tensor.Quantizer{
			Scale: func(int, float32, bool) fp8.Scale { return fp8.Scale{Stored: 8, Multiplier: 0.125} },
		}))
		got := make([]float32, len(src))
		tensor.Dequantize(got, x)
		require.Equal(t, src, got)
	}
}

// TestDequantizeLength checks that a destination of the wrong length panics and
// stays as it is.
func TestDequantizeLength(t *testing.T) {
	x := random(rand.New(rand.NewPCG(1, 1)), fp8.E4M3, tensor.Block{}, 3, 4)
	for _, n := range []int{0, 11, 13} {
		dst := make([]float32, n)
		require.PanicsWithValue(t, "tensor: destination is not as long as the tensor's shape says", func() { tensor.Dequantize(dst, x) })
		require.Equal(t, make([]float32, n), dst)
	}
}

func TestTranspose(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, shape := range shapes {
		for _, b := range blocks {
			x := random(r, fp8.E5M2, b, shape...)
			rows, cols := x.Dims()
			before := snapshot(x)
			y := x.Transpose()
			require.NoError(t, y.Check())
			require.Equal(t, []int{cols, rows}, y.Shape)
			require.Equal(t, tensor.Block{Rows: b.Cols, Cols: b.Rows}, y.Block)
			value := valuesOf(x)
			require.NoError(t, differ(y, func(i, j int) float32 { return value(j, i) }))

			z := y.Transpose()
			require.Equal(t, snapshot(&tensor.Tensor{Name: "x", Format: fp8.E5M2, Shape: []int{rows, cols},
				Block: b, Codes: x.Codes, Scales: x.Scales}), *z)
			require.Equal(t, before, snapshot(x))
			if x.Len() > 0 {
				y.Codes[0]++
				y.Scales[0]++
				require.Equal(t, before, snapshot(x), "memory is shared")
			}
		}
	}
}

// TestTransposeView checks that the strides of a view are honoured.
func TestTransposeView(t *testing.T) {
	x := random(rand.New(rand.NewPCG(3, 3)), fp8.E4M3, tensor.Block{Rows: 3, Cols: 4}, 10, 18)
	v, err := x.ColRange(4, 15)
	require.NoError(t, err)
	v, err = v.RowRange(3, 10)
	require.NoError(t, err)
	value := valuesOf(x)
	require.NoError(t, differ(v.Transpose(), func(i, j int) float32 { return value(j+3, i+4) }))

	for _, b := range []tensor.Block{{Rows: 1, Cols: 1}, {Rows: 16, Cols: 32}} {
		x := random(rand.New(rand.NewPCG(4, 4)), fp8.E4M3, b, 200, 330)
		v, err := x.ColRange(64, 64+256)
		require.NoError(t, err)
		v, err = v.RowRange(16, 16+160)
		require.NoError(t, err)
		value := valuesOf(x)
		require.NoError(t, differ(v.Transpose(), func(i, j int) float32 { return value(j+16, i+64) }))
	}
}

// TestDequantizeRows compares rows that begin anywhere in a block with those of the whole.
func TestDequantizeRows(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 1))
	for _, block := range []tensor.Block{{}, {Rows: 1}, {Rows: 3, Cols: 4}, {Rows: 128, Cols: 128}} {
		x := tensor.Tensor{Name: "x", Format: fp8.E4M3, Shape: []int{10, 7}, Block: block}
		src := make([]float32, 70)
		for i := range src {
			src[i] = float32(r.NormFloat64())
		}
		scale := func(int, float32, bool) fp8.Scale { return fp8.Scale{Stored: r.Float32() + 0.5} }
		require.NoError(t, tensor.Quantize(t.Context(), &x, src, tensor.Quantizer{Scale: scale, Options: tensor.Options{Workers: 1}}))
		want := make([]float32, 70)
		tensor.Dequantize(want, &x)
		for lo := range 11 {
			for n := range 11 - lo {
				got := make([]float32, 7*n)
				tensor.DequantizeRows(got, &x, lo)
				require.Equal(t, want[7*lo:][:7*n], got)
			}
		}
		for _, bad := range []struct{ n, lo int }{{8, 0}, {7, 10}, {77, 0}, {7, -1}} {
			require.PanicsWithValue(t, "tensor: destination is not that of whole rows of the tensor", func() { tensor.DequantizeRows(make([]float32, bad.n), &x, bad.lo) })
		}
	}
}
