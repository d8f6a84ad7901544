package operands

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// write writes a safetensors file in a directory of its own.
func write(t *testing.T, tensors ...safetensors.Tensor) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "in.safetensors")
	require.NoError(t, safetensors.WriteFile(path, tensors, nil))
	return path
}

// raw returns a tensor of the given data.
func raw(name string, dtype safetensors.DType, shape []int, data ...byte) safetensors.Tensor {
	return safetensors.Tensor{Info: safetensors.Info{Name: name, DType: dtype, Shape: shape}, Data: data}
}

// TestSwappedFiles checks that of two files the error names the one without the tensor.
func TestSwappedFiles(t *testing.T) {
	x := write(t, raw("x", safetensors.F8E4M3, []int{1, 1}, 1))
	w := write(t, raw("w", safetensors.F8E4M3, []int{1, 1}, 1))
	p := Product{Files: []string{w, x}, A: Operand{Codes: "x"}, B: Operand{Codes: "w"}}
	files, err := p.Open()
	require.NoError(t, err)
	defer files.Close()
	_, err = files.A()
	require.ErrorIs(t, err, ErrName)
	require.ErrorContains(t, err, w)
}

// TestBiasOfA looks for what is added in B's file first, and then in A's.
func TestBiasOfA(t *testing.T) {
	a := write(t, raw("both", safetensors.F32, []int{1}, floats(1)...), raw("only", safetensors.F32, []int{1}, floats(2)...))
	b := write(t, raw("both", safetensors.F32, []int{1}, floats(3)...))
	p := Product{Files: []string{a, b}}
	files, err := p.Open()
	require.NoError(t, err)
	defer files.Close()
	for name, want := range map[string]float32{"both": 3, "only": 2} {
		p.Bias = name
		bias, err := files.Bias(1)
		require.NoError(t, err)
		require.Equal(t, []float32{want}, bias)
	}
	p.Bias = "none"
	_, err = files.Bias(1)
	require.ErrorIs(t, err, ErrName)
	require.ErrorContains(t, err, b)
}

// TestIn reads a product all of which is in memory.
func TestIn(t *testing.T) {
	tensors := []safetensors.Tensor{
		raw("x", safetensors.F8E4M3, []int{1, 1}, 0x38), raw("s", safetensors.F32, []int{1}, floats(2)...),
		raw("y", safetensors.F32, []int{1, 1}, floats(4)...),
	}
	file, err := safetensors.Open(write(t, tensors...))
	require.NoError(t, err)
	defer file.Close()
	x := Operand{Codes: "x", Scales: "s"}
	p := Product{Files: []string{"ignored"}, A: x, B: x, Got: "ignored", C: "y", Bias: "s", Accumulate: "y"}
	files := p.In(file)
	defer files.Close()
	a, err := files.A()
	require.NoError(t, err)
	require.Equal(t, float32(2), a.At(0, 0))
	b, err := files.B()
	require.NoError(t, err)
	c, err := files.Result(a, b)
	require.NoError(t, err)
	require.Equal(t, "y", c.Name)
	_, err = files.Old(a, b)
	require.NoError(t, err)
	bias, err := files.Bias(1)
	require.NoError(t, err)
	require.Equal(t, []float32{2}, bias)
	p.C = "z"
	_, err = files.Result(a, b)
	require.ErrorIs(t, err, ErrName)
}

// TestBiasType refuses a bias of another type, and of another length.
func TestBiasType(t *testing.T) {
	file := write(t, raw("short", safetensors.I32, []int{1}, floats(1)...), raw("two", safetensors.F32, []int{2}, floats(1, 2)...))
	p := Product{Files: []string{file}}
	files, err := p.Open()
	require.NoError(t, err)
	defer files.Close()
	for _, p.Bias = range []string{"short", "two"} {
		_, err = files.Bias(1)
		require.ErrorIs(t, err, ErrResult, p.Bias)
	}
}

// TestEmptyRows refuses more rows of nothing than anyone multiplies: no data bounds the
// work on them.
func TestEmptyRows(t *testing.T) {
	for rows, ok := range map[int]bool{maxEmptyRows: true, maxEmptyRows + 1: false} {
		file := write(t, raw("x", safetensors.F8E4M3, []int{rows, 0}), raw("x_scale_inv", safetensors.F32, []int{0}))
		p := Product{Files: []string{file}, A: Operand{Codes: "x", Block: &tensor.Block{}}}
		files, err := p.Open()
		require.NoError(t, err)
		defer files.Close()
		if _, err = files.A(); ok {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "has no elements and more than 1048576 rows")
		}
	}
}
