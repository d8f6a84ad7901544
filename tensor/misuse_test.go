package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// survives calls f, which must return, or panic with a constant of this project or
// with gonum's own error.
func survives(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		switch p := recover().(type) {
		case nil, mat.Error:
		case string:
			require.True(t, strings.HasPrefix(p, "tensor: ") || strings.HasPrefix(p, "fp8: "), "%s: panics with %q", name, p)
		default:
			require.Fail(t, "raw panic", "%s: panics with %v", name, p)
		}
	}()
	f()
}

// refused calls f, which must return an error or panic as survives allows.
func refused(t *testing.T, name string, f func() error) {
	t.Helper()
	returned := false
	survives(t, name, func() {
		err := f()
		returned = err == nil
	})
	require.False(t, returned, "%s: is not refused", name)
}

// broken are tensors that do not pass Check.
func broken() map[string]*tensor.Tensor {
	all := map[string]*tensor.Tensor{"nil": nil}
	for name, change := range map[string]func(x *tensor.Tensor){
		"format":          func(x *tensor.Tensor) { x.Format = 77 },
		"negative rows":   func(x *tensor.Tensor) { x.Shape = []int{-4, 6} },
		"negative cols":   func(x *tensor.Tensor) { x.Shape = []int{4, -3} },
		"negative both":   func(x *tensor.Tensor) { x.Shape = []int{-4, -6} },
		"too many":        func(x *tensor.Tensor) { x.Shape = []int{math.MaxInt, math.MaxInt, 3} },
		"wraps":           func(x *tensor.Tensor) { x.Shape = []int{math.MaxInt/2 + 1, 4} },
		"negative block":  func(x *tensor.Tensor) { x.Block = tensor.Block{Rows: -2, Cols: 3} },
		"negative width":  func(x *tensor.Tensor) { x.Block = tensor.Block{Rows: 2, Cols: math.MinInt} },
		"no codes":        func(x *tensor.Tensor) { x.Codes = nil },
		"short codes":     func(x *tensor.Tensor) { x.Codes = x.Codes[:23] },
		"long codes":      func(x *tensor.Tensor) { x.Codes = make([]byte, 25) },
		"no scales":       func(x *tensor.Tensor) { x.Scales = nil },
		"short scales":    func(x *tensor.Tensor) { x.Scales = x.Scales[:3] },
		"stride":          func(x *tensor.Tensor) { x.Stride = 5 },
		"negative stride": func(x *tensor.Tensor) { x.Stride = -6 },
		"huge stride":     func(x *tensor.Tensor) { x.Stride = math.MaxInt },
		"scale stride":    func(x *tensor.Tensor) { x.ScaleStride = math.MinInt },
		"huge scales":     func(x *tensor.Tensor) { x.ScaleStride = math.MaxInt },
	} {
		x := &tensor.Tensor{Name: name, Shape: []int{4, 6}, Block: tensor.Block{Rows: 2, Cols: 3}, Codes: make([]byte, 24), Scales: make([]float32, 4)}
		change(x)
		all[name] = x
	}
	return all
}

var oddNumbers = []int{math.MinInt, -7, -1, 0, 1, 2, 3, 4, 5, 6, 7, math.MaxInt / 3, math.MaxInt}

// TestMisuse throws what is wrong at every function that can be given it: what comes
// back is an error or a panic with a constant.
func TestMisuse(t *testing.T) {
	ctx := t.Context()
	for name, x := range broken() {
		refused(t, "Dequantize "+name, func() error { tensor.Dequantize(make([]float32, 24), x); return nil })
		if x == nil {
			refused(t, "Quantize nil", func() error {
				return tensor.Quantize(ctx, x, make([]float32, 24), tensor.Quantizer{Scale: largest(fp8.E4M3)})
			})
			refused(t, "QuantizeMatrix nil", func() error {
				return tensor.QuantizeMatrix(ctx, x, mat.NewDense(4, 6, nil), tensor.Quantizer{Scale: largest(fp8.E4M3)})
			})
			continue
		}
		require.Error(t, x.Check(), name)
		require.Error(t, x.CheckScales(), name)
		for method, f := range map[string]func() error{
			"Transpose": func() error { x.Transpose(); return nil },
			"Matrix":    func() error { x.Matrix(); return nil },
			"RowRange":  func() error { _, err := x.RowRange(0, 2); return err },
			"ColRange":  func() error { _, err := x.ColRange(0, 3); return err },
			"Index":     func() error { _, err := x.Index(0); return err },
			"Reshape":   func() error { _, err := x.Reshape(2, 2, 6); return err },
		} {
			refused(t, method+" "+name, f)
		}
		for _, n := range []int{0, 23, 24, 25} {
			before := *x
			require.NotPanics(t, func() {
				y := *x
				_ = tensor.Quantize(ctx, &y, make([]float32, n), tensor.Quantizer{Scale: largest(fp8.E4M3)})
			}, name)
			require.Equal(t, before, *x)
		}
		for _, i := range oddNumbers {
			survives(t, "Row "+name, func() { x.Row(i) })
			survives(t, "ScaleRow "+name, func() { x.ScaleRow(i) })
			for _, j := range oddNumbers {
				survives(t, "Scale "+name, func() { x.Scale(i, j) })
				survives(t, "At "+name, func() { x.At(i, j) })
			}
		}
		for method, f := range map[string]func(){
			"Dims": func() { x.Dims() }, "Len": func() { x.Len() }, "Grid": func() { x.Grid() }, "Strides": func() { x.Strides() },
		} {
			survives(t, method+" "+name, f)
		}
	}

	for _, shape := range [][]int{{2, -3}, {-2, 3}, {-2, -3}, {-1, -1, -3}} {
		negative := &tensor.Tensor{Shape: shape}
		for _, i := range []int{0, 1} {
			require.PanicsWithValue(t, "tensor: there is no such element", func() { negative.Scale(i, 0) })
			require.PanicsWithValue(t, "tensor: there is no such element", func() { negative.At(0, i) })
		}
	}

	whole := &tensor.Tensor{Name: "w", Shape: []int{2, 2, 6}, Block: tensor.Block{Rows: 2, Cols: 3}, Codes: make([]byte, 24), Scales: make([]float32, 4)}
	require.NoError(t, whole.Check())
	err := tensor.Quantize(ctx, whole, make([]float32, 23), tensor.Quantizer{Scale: largest(fp8.E4M3)})
	require.ErrorIs(t, err, tensor.ErrShape)
	require.EqualError(t, err, `tensor "w": the source has 23 elements: it must have 24`)
	m := whole.Matrix()
	changed := *whole
	changedMatrix := changed.Matrix()
	changed.Shape = []int{2, -3}
	require.PanicsWithValue(t, mat.ErrColAccess, func() { changedMatrix.At(0, 0) })
	changed.Shape = []int{-2, 3}
	require.PanicsWithValue(t, mat.ErrRowAccess, func() { changedMatrix.At(0, 0) })
	for _, i := range oddNumbers {
		survives(t, "Index", func() { _, _ = whole.Index(i) })
		survives(t, "Reshape", func() { _, _ = whole.Reshape(i, 6) })
		survives(t, "Row", func() { whole.Row(i) })
		for _, j := range oddNumbers {
			inside := i >= 0 && i < 4 && j >= 0 && j < 6
			if !inside {
				require.PanicsWithValue(t, "tensor: there is no such element", func() { whole.Scale(i, j) })
				require.PanicsWithValue(t, "tensor: there is no such element", func() { whole.At(i, j) })
			}
			survives(t, "Matrix.At", func() { m.At(i, j) })
			survives(t, "RowRange", func() { _, _ = whole.RowRange(i, j) })
			survives(t, "ColRange", func() { _, _ = whole.ColRange(i, j) })
			b := tensor.Block{Rows: i, Cols: j}
			survives(t, "Block", func() { _ = b.String(); _ = b.Transposed() })
			for _, n := range oddNumbers {
				survives(t, "Extents", func() { b.Extents(n, n) })
				survives(t, "Grid", func() { b.Grid(n, i) })
			}
			text, err := b.MarshalText()
			require.Equal(t, i < 0 || j < 0, err != nil)
			if err == nil {
				var back tensor.Block
				require.NoError(t, back.UnmarshalText(text))
				require.Equal(t, b, back)
			}
		}
	}
	for _, n := range []int{0, 23, 25} {
		refused(t, "Dequantize", func() error { tensor.Dequantize(make([]float64, n), whole); return nil })
		refused(t, "Quantize", func() error {
			return tensor.Quantize(ctx, whole, make([]float64, n), tensor.Quantizer{Scale: largest(fp8.E4M3)})
		})
	}
	for name, q := range map[string]tensor.Quantizer{
		"no Scale": {}, "workers": {Scale: largest(fp8.E4M3), Options: tensor.Options{Workers: -1}},
		"policy": {Scale: largest(fp8.E4M3), Policy: fp8.Policy{Rounding: 9}},
	} {
		before := snapshot(whole)
		refused(t, name, func() error { return tensor.Quantize(ctx, whole, make([]float32, 24), q) })
		refused(t, name, func() error { return tensor.QuantizeMatrix(ctx, whole, mat.NewDense(4, 6, nil), q) })
		require.Equal(t, before, snapshot(whole))
	}
	refused(t, "nil matrix", func() error {
		return tensor.QuantizeMatrix(ctx, whole, nil, tensor.Quantizer{Scale: largest(fp8.E4M3)})
	})
	refused(t, "matrix of a size that is none", func() error {
		return tensor.QuantizeMatrix(ctx, whole, oddMatrix{}, tensor.Quantizer{Scale: largest(fp8.E4M3)})
	})
	for _, text := range []string{"", "x", "0x1", "-1x2", "1x", "999999999999999999999x1", "tensorx"} {
		b := tensor.Block{Rows: 5}
		require.ErrorIs(t, b.UnmarshalText([]byte(text)), tensor.ErrShape, text)
		require.Equal(t, tensor.Block{Rows: 5}, b)
	}
}

type oddMatrix struct{ mat.Matrix }

func (oddMatrix) Dims() (rows, cols int) { return math.MaxInt, math.MaxInt }

// TestErrors tells errors apart as a program does.
func TestErrors(t *testing.T) {
	x := &tensor.Tensor{Name: "w", Shape: []int{4, 6}, Block: tensor.Block{Rows: 2, Cols: 3}, Codes: make([]byte, 24), Scales: []float32{1, 1, -1, 1}}
	_, inside := x.RowRange(1, 3)
	_, outside := x.RowRange(0, 5)
	bad := *x
	bad.Codes = nil
	unknown := *x
	unknown.Format = 99
	kinds := []error{tensor.ErrShape, tensor.ErrBlock, tensor.ErrScale, fp8.ErrFormat}
	for i, err := range []error{outside, inside, x.CheckScales(), unknown.Check()} {
		for k, kind := range kinds {
			require.Equal(t, i == k, errors.Is(err, kind), "%v", err)
		}
		require.Contains(t, fmt.Sprint(err), `tensor "w"`)
	}
	require.ErrorIs(t, bad.Check(), tensor.ErrShape)
}
