package nn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/tensor"
)

// sixRecipes differ in every operand, so that a recipe used in the wrong place
// shows.
func sixRecipes() FP8 {
	recipe := func(p scaling.Profile, f fp8.Format, rows, cols int) scaling.Recipe {
		return scaling.Recipe{Profile: p, Format: f, Block: tensor.Block{Rows: rows, Cols: cols}}
	}
	return FP8{
		Forward:        Operands{recipe(scaling.TEBlock, fp8.E4M3, 1, 4), recipe(scaling.DeepGEMM, fp8.E4M3, 2, 4)},
		InputGradient:  Operands{recipe(scaling.TEBlock, fp8.E5M2, 1, 2), recipe(scaling.DeepSeek, fp8.E4M3, 4, 2)},
		WeightGradient: Operands{recipe(scaling.MTFP8, fp8.E5M2, 1, 3), recipe(scaling.TECurrentPow2, fp8.E4M3, 1, 0)},
	}
}

// TestFP8Products compares the three products of a layer with products of
// operands that the test quantizes itself.
func TestFP8Products(t *testing.T) {
	const rows, out, in = 7, 6, 9
	recipes := sixRecipes()
	l, err := NewLinear("layer.weight", out, in, Options{FP8: &recipes})
	require.NoError(t, err)
	copy(l.Weight.Value, randoms(1, out*in))
	x, dy := randoms(2, rows*in), randoms(3, rows*out)

	y, dx := make([]float32, rows*out), make([]float32, rows*in)
	require.NoError(t, l.Forward(t.Context(), y, x, rows))
	require.NoError(t, l.Backward(t.Context(), dx, dy))

	require.Equal(t, quantizedProduct(t, recipes.Forward, x, l.Weight.Value, rows, out, in), y)
	require.Equal(t, quantizedProduct(t, recipes.InputGradient, dy, flip(l.Weight.Value, out), rows, in, out), dx)
	require.Equal(t, quantizedProduct(t, recipes.WeightGradient, flip(dy, rows), flip(x, rows), out, in, rows), l.Weight.Grad)
}

func quantizedProduct(t *testing.T, o Operands, a, b []float32, m, n, k int) []float32 {
	x := &tensor.Tensor{Name: "a", Shape: []int{m, k}}
	w := &tensor.Tensor{Name: "b", Shape: []int{n, k}}
	require.NoError(t, scaling.Quantize(t.Context(), x, a, scaling.Quantizer{Recipe: o.A}))
	require.NoError(t, scaling.Quantize(t.Context(), w, b, scaling.Quantizer{Recipe: o.B}))
	c := make([]float32, m*n)
	require.NoError(t, gemm.Multiply(t.Context(), c, x, w, gemm.Options{}))
	return c
}

func flip(m []float32, rows int) []float32 {
	cols := len(m) / rows
	v := make([]float32, len(m))
	for i := range rows {
		for j := range cols {
			v[j*rows+i] = m[i*cols+j]
		}
	}
	return v
}

func small() Config {
	return Config{Vocab: 128, Dim: 32, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 48, Context: 16}
}

func withFP8(cfg Config, f FP8) Config {
	cfg.FP8 = &f
	return cfg
}

func TestNewLinearRefuses(t *testing.T) {
	_, err := NewLinear("w", 0, 2, Options{})
	require.ErrorContains(t, err, "w is [0, 2]")
	bad := DefaultFP8()
	bad.Forward.A.Epsilon = -1
	_, err = NewLinear("w", 2, 2, Options{FP8: &bad})
	require.ErrorContains(t, err, "FP8.Forward.A")
}

func TestDelayedLinear(t *testing.T) {
	recipes := ProfileFP8(scaling.TEDelayed, fp8.E5M2)
	_, err := NewLinear("w", 1, 1, Options{FP8: &recipes})
	require.ErrorContains(t, err, "Options.Shared is nil: delayed scales need one")

	var shared Shared
	l, err := NewLinear("w", 1, 1, Options{FP8: &recipes, Shared: &shared})
	require.NoError(t, err)
	l.Weight.Value[0] = 1
	y := make([]float32, 1)
	require.NoError(t, l.Forward(t.Context(), y, []float32{1e-4}, 1))
	require.Zero(t, y[0], "the first step has scale 1, under which 1e-4 is lost")
	shared.Scaling().EndStep()
	require.NoError(t, l.Forward(t.Context(), y, []float32{1e-4}, 1))
	require.InEpsilon(t, 1e-4, y[0], 1.0/16)
}

func TestConfigRefusesWhatCannotGoTogether(t *testing.T) {
	f := DefaultFP8()
	f.Forward.B.Block = tensor.Block{Rows: 1, Cols: 96}
	_, err := NewLlama(withFP8(small(), f), 1)
	require.ErrorContains(t, err, "FP8.Forward: gemm: tensor \"a\" in blocks of 1x128 and tensor \"b\" in blocks of 1x96")
	cfg := small()
	cfg.Smoothing = &swiglu.Smoothing{Axis: 9}
	_, err = NewLlama(cfg, 1)
	require.ErrorContains(t, err, "Config.Smoothing: swiglu: unknown axis")
	cfg.Smoothing = &swiglu.Smoothing{Delay: -1}
	_, err = NewLlama(cfg, 1)
	require.ErrorContains(t, err, "delay of -1 steps")
}

func TestConfigNamesTheBadRecipe(t *testing.T) {
	f := DefaultFP8()
	f.WeightGradient.B.Profile = "no-such"
	_, err := NewLlama(withFP8(small(), f), 1)
	require.ErrorContains(t, err, `FP8.WeightGradient.B: scaling: unknown profile "no-such"`)
}

func TestConfigRefusesSignsWithoutHadamard(t *testing.T) {
	for _, test := range []struct {
		hadamard bool
		signs    uint16
		text     string
	}{
		{false, 0, ""},
		{true, 0, ""},
		{true, 0xD7E8, ""},
		{false, 0xD7E8, "FP8.Signs is 0xd7e8: without FP8.Hadamard nothing is transformed"},
		{false, 1, "FP8.Signs is 0x0001: without FP8.Hadamard nothing is transformed"},
	} {
		f := DefaultFP8()
		f.Hadamard, f.Signs = test.hadamard, test.signs
		err := withFP8(small(), f).Validate()
		if test.text == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, test.text)
	}
}
