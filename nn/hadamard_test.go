package nn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/scaling"
)

// TestHadamardProducts compares the weight gradient with a product of operands that the
// test transforms and quantizes itself: of rows that fill groups and of some that do not,
// for activations that are kept in FP32 and in FP8.
func TestHadamardProducts(t *testing.T) {
	const out, in = 6, 9
	for _, rows := range []int{7, 16, 40} {
		for _, kept := range []ActivationFormat{ActivationsFP32, ActivationsFP8} {
			recipes := sixRecipes()
			recipes.Hadamard, recipes.Signs = true, scaling.NVIDIASigns
			l, err := NewLinear("layer.weight", out, in, Options{FP8: &recipes, Activations: kept})
			require.NoError(t, err)
			copy(l.Weight.Value, randoms(1, out*in))
			x, dy := randoms(2, rows*in), randoms(3, rows*out)
			y, dx := make([]float32, rows*out), make([]float32, rows*in)
			require.NoError(t, l.Forward(t.Context(), y, x, rows))
			require.NoError(t, l.Backward(t.Context(), dx, dy))

			h := scaling.Hadamard{Signs: scaling.NVIDIASigns}
			dyT, xT := flip(dy, rows), flip(x, rows)
			require.NoError(t, scaling.HadamardTransform(t.Context(), dyT, dyT, out, rows, h))
			require.NoError(t, scaling.HadamardTransform(t.Context(), xT, xT, in, rows, h))
			require.Equal(t, quantizedProduct(t, recipes.Forward, x, l.Weight.Value, rows, out, in), y, "not transformed")
			require.Equal(t, quantizedProduct(t, recipes.InputGradient, dy, flip(l.Weight.Value, out), rows, in, out), dx, "not transformed")
			require.Equal(t, quantizedProduct(t, recipes.WeightGradient, dyT, xT, out, in, rows), l.Weight.Grad, "%d rows, %v", rows, kept)
		}
	}
}

// TestBF16Layers: the first and last layers of a model multiply as those of a model in
// BF16 do, and the others as those of one in FP8.
func TestBF16Layers(t *testing.T) {
	cfg := withFP8(small(), DefaultFP8())
	cfg.Layers, cfg.BF16First, cfg.BF16Last, cfg.Activations = 4, 1, 2, ActivationsFP8
	m, err := NewLlama(cfg, 1)
	require.NoError(t, err)
	for i, b := range m.Blocks() {
		for _, l := range b.linears() {
			_, inFP8 := l.products.(*fp8Products)
			require.Equal(t, i == 1, inFP8, "layer %d", i)
			if !inFP8 {
				r, ok := l.products.(*roundedProducts)
				require.True(t, ok)
				require.True(t, r.bf16Results)
			}
		}
	}
	tokens := someTokens(1, 12, cfg.Vocab)
	_, err = m.Loss(t.Context(), tokens, tokens, 2, 6)
	require.NoError(t, err)
	require.NoError(t, m.Backward(t.Context()))
	for _, p := range m.Params() {
		require.NotEqual(t, make([]float32, len(p.Grad)), p.Grad, p.Name)
	}

	all := cfg
	all.BF16First, all.BF16Last = 0, 4
	bf16 := small()
	rounding := DefaultRounding(NarrowBF16)
	bf16.Layers, bf16.Rounding = 4, &rounding
	a, err := NewLlama(all, 1)
	require.NoError(t, err)
	b, err := NewLlama(bf16, 1)
	require.NoError(t, err)
	for _, m := range []*Llama{a, b} {
		_, err := m.Loss(t.Context(), tokens, tokens, 2, 6)
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
	}
	for i, p := range a.Params() {
		require.Equal(t, b.Params()[i].Grad, p.Grad, p.Name)
	}
}

func TestBF16LayersRefused(t *testing.T) {
	for _, c := range []struct {
		first, last int
		fp8         bool
		says        string
	}{
		{-1, 0, true, "must not be negative"},
		{0, -1, true, "must not be negative"},
		{1, 2, true, "together at most Layers = 2"},
		{0, 1, false, "without FP8"},
	} {
		cfg := small()
		if c.fp8 {
			cfg = withFP8(cfg, DefaultFP8())
		}
		cfg.BF16First, cfg.BF16Last = c.first, c.last
		_, err := NewLlama(cfg, 1)
		require.ErrorIs(t, err, ErrConfig)
		require.ErrorContains(t, err, c.says)
	}
}
