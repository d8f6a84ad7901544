package evaluate

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
)

func meanOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// TestExchange exchanges FP32 for a recipe, which Run does as well, and one layer alone,
// against models that have it rounded.
func TestExchange(t *testing.T) {
	c := smallConfig()
	m := smallModel(t, c)
	tokens := someTokens(30, c.Vocab)
	r := recipe(t, "te-block")
	o := Options{Recipes: []Recipe{r}, Modes: []Mode{Weights}, Context: 10, LayerTokens: -1}
	want, err := Run(t.Context(), m, tokens, o)
	require.NoError(t, err)

	plain := func(string) nn.Rounding { return nn.Rounding{} }
	rounded := func(string) nn.Rounding {
		again := *r.Weight.Recipe
		return nn.Rounding{Weight: nn.Narrowing{Recipe: &again}}
	}
	blocks := func(layer string) nn.Rounding {
		if layer == "lm_head" {
			return plain(layer)
		}
		return rounded(layer)
	}
	got, err := Exchange(t.Context(), m, tokens, plain, blocks, Options{Context: 10})
	require.NoError(t, err)
	require.Equal(t, want.Targets, got.Targets)
	require.Len(t, got.Whole.KL, got.Targets)
	require.InDelta(t, float64(want.Results[0].KL.Mean), meanOf(got.Whole.KL), 1e-15)
	require.InDelta(t, -float64(want.Results[0].Difference.Mean), meanOf(got.Whole.Difference), 1e-12)
	require.Len(t, got.Layers, 2*7)

	// One layer alone, as if it were the whole.
	all, err := Exchange(t.Context(), m, tokens, plain, rounded, Options{Context: 10})
	require.NoError(t, err)
	require.Equal(t, got.Layers, all.Layers[:2*7])
	plainly, err := Run(t.Context(), m, tokens, Options{Context: 10, LayerTokens: -1})
	require.NoError(t, err)
	for _, name := range []string{"model.layers.1.mlp.up_proj", "lm_head"} {
		at := slices.IndexFunc(all.Layers, func(c Change) bool { return c.Name == name })
		one, err := Exchange(t.Context(), m, tokens, plain, func(layer string) nn.Rounding {
			if layer == name {
				return rounded(layer)
			}
			return plain(layer)
		}, Options{Context: 10})
		require.NoError(t, err)
		require.Len(t, one.Layers, 1)
		require.Equal(t, all.Layers[at], one.Layers[0])
		require.Equal(t, one.Whole.KL, one.Layers[0].KL)
		require.Greater(t, meanOf(one.Whole.KL), 0.0)
		changed := copyOf(t, m, c, nil)
		weight := changed.Param(name + ".weight")
		require.NotNil(t, weight, name)
		decode(t, *r.Weight.Recipe, weight.Value, weight.Cols)
		other, err := Run(t.Context(), changed, tokens, Options{Context: 10, LayerTokens: -1})
		require.NoError(t, err)
		require.InDelta(t, float64(plainly.Loss.Mean-other.Loss.Mean), meanOf(one.Whole.Difference), 1e-6)
	}

	same, err := Exchange(t.Context(), m, tokens, rounded, rounded, Options{Context: 10})
	require.NoError(t, err)
	require.Empty(t, same.Layers)
	require.Zero(t, meanOf(same.Whole.KL))
	_, err = Exchange(t.Context(), m, tokens[:1], plain, rounded, Options{})
	require.ErrorIs(t, err, ErrTokens)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	_, err = Exchange(stopped, m, tokens, plain, rounded, Options{})
	require.ErrorIs(t, err, context.Canceled)
}
