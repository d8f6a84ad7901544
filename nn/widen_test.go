package nn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
)

// TestWiden widens one kind of operand after another until nothing is left.
func TestWiden(t *testing.T) {
	cfg := withFP8(tiny, ProfileFP8(scaling.TECurrent, fp8.E4M3))
	cfg.Activations, cfg.BF16Last = ActivationsFP8, 1
	before := *cfg.FP8
	wide, what, err := cfg.Widen("model.layers.1.mlp.up_proj.gradient")
	require.NoError(t, err)
	require.Equal(t, "gradient from E4M3 to E5M2", what.String())
	require.Equal(t, before, *cfg.FP8, "the original stays")
	require.Equal(t, ProfileFP8(scaling.TECurrent, fp8.E5M2), *wide.FP8)
	wide, what, err = wide.Widen("x.input")
	require.NoError(t, err)
	require.Equal(t, "input from E4M3 to E5M2", what.String())
	require.Equal(t, fp8.E5M2, wide.FP8.Forward.A.Format)
	require.Equal(t, fp8.E5M2, wide.FP8.WeightGradient.B.Format)
	require.Equal(t, fp8.E4M3, wide.FP8.Forward.B.Format)
	wide, what, err = wide.Widen("x.gradient")
	require.NoError(t, err)
	require.Equal(t, "products from E5M2 to BF16", what.String())
	require.Nil(t, wide.FP8)
	require.Equal(t, DefaultRounding(NarrowBF16), *wide.Rounding)
	require.NoError(t, wide.Validate())
	_, _, err = wide.Widen("x.gradient")
	require.ErrorIs(t, err, ErrConfig)

	four := tiny
	recipe, err := ParseRecipe("nvfp4")
	require.NoError(t, err)
	recipe.Apply(&four, 1)
	wide, what, err = four.Widen("x.weight")
	require.NoError(t, err)
	require.Equal(t, "products from E2M1 to BF16", what.String(), "NVFP4 is for E2M1 alone")
	require.NoError(t, wide.Validate())
}

// TestWidenModel: parameters and amaxes of histories stay, scales reach 128 times as far, and
// the model goes on.
func TestWidenModel(t *testing.T) {
	m := livelyModel(t, delayedRagged())
	tokens := someTokens(1, 12, tiny.Vocab)
	step := func(m *Llama) {
		_, err := m.Loss(t.Context(), tokens, tokens, 2, 6)
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
		m.EndStep()
	}
	step(m)
	step(m)
	wide, _, err := m.Widen("model.layers.0.mlp.up_proj.input")
	require.NoError(t, err)
	for i, p := range m.Params() {
		require.Equal(t, p.Value, wide.Params()[i].Value)
	}
	old, now := m.Shared().Scaling().State(), wide.Shared().Scaling().State()
	require.Equal(t, old.Smoothers, now.Smoothers)
	changed := 0
	for name, h := range now.Histories.Histories {
		was := old.Histories.Histories[name]
		for i, b := range h.Blocks {
			require.Equal(t, was.Blocks[i].Past, b.Past)
			ratio := float32(1)
			if h.Format != was.Format {
				ratio = 128
				changed++
			}
			require.Equal(t, ratio*float32(was.Blocks[i].Scale), float32(b.Scale), name)
		}
	}
	require.Positive(t, changed)
	step(wide)
}
