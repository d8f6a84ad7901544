package nn

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// again makes the codes and scales of an operand of what it was made of.
func again(t *testing.T, o ProductOperand) *tensor.Tensor {
	made := &tensor.Tensor{Shape: o.Tensor.Shape}
	if o.Multipliers == nil {
		require.NoError(t, scaling.Quantize(t.Context(), made, o.Values, scaling.Quantizer{Recipe: o.Recipe}))
		return made
	}
	made.Format, made.Block = o.Recipe.Format, o.Recipe.Block
	q := tensor.Quantizer{Policy: o.Recipe.EncodePolicy()}
	q.Scale = func(block int, _ float32, _ bool) fp8.Scale {
		return fp8.Scale{Stored: 1 / o.Multipliers[block], Multiplier: o.Multipliers[block]}
	}
	require.NoError(t, tensor.Quantize(t.Context(), made, o.Values, q))
	return made
}

// TestProductTap: every product of every layer is seen, and what is seen computes it again,
// to the bit, whatever is kept, delayed, random, transformed, grouped or common.
func TestProductTap(t *testing.T) {
	delayed := delayedRagged()
	delayed.FP8.Stochastic = true
	four := small()
	recipe, err := ParseRecipe("nvfp4")
	require.NoError(t, err)
	recipe.Apply(&four, 3)
	experts := mixture()
	f := DefaultFP8()
	experts.FP8 = &f
	for name, c := range map[string]struct {
		cfg    Config
		noB    bool // xᵀ was kept as codes
		layers int  // in FP8
	}{
		"delayed": {delayed, false, 14},
		"kept":    {kept(delayed, ActivationsFP8), true, 14},
		"tiles":   {kept(withFP8(small(), DefaultFP8()), ActivationsDeepSeekV3), false, 14},
		"nvfp4":   {four, false, 7},
		"experts": {experts, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, twin := livelyModel(t, c.cfg), livelyModel(t, c.cfg)
			tokens := someTokens(1, 2*5, c.cfg.Vocab)
			step := func(m *Llama) {
				m.ZeroGrad()
				_, err := m.Loss(t.Context(), tokens, tokens, 2, 5)
				require.NoError(t, err)
				require.NoError(t, m.Backward(t.Context()))
				m.EndStep()
			}
			step(m)
			step(twin)
			products := map[string]int{}
			m.Shared().ProductTap = func(p Product) {
				products[p.Op]++
				at := fmt.Sprintf("%s %s", p.Name, p.Op)
				a, b := again(t, p.A), p.B.Tensor
				if !c.noB || p.Op != opWeightGradient {
					b = again(t, p.B)
				} else {
					require.Nil(t, p.B.Values)
				}
				require.Equal(t, string(p.A.Tensor.Codes), string(a.Codes), at)
				require.Equal(t, string(p.B.Tensor.Codes), string(b.Codes), at)
				result := make([]float32, len(p.Result))
				require.NoError(t, gemm.Multiply(t.Context(), result, a, b, gemm.Options{}))
				for i := range result {
					require.Equal(t, math.Float32bits(p.Result[i]), math.Float32bits(result[i]), at)
				}
			}
			_, err := m.Evaluate(t.Context(), tokens, tokens, 2, 5)
			require.NoError(t, err)
			require.Empty(t, products, "inference is not seen")
			step(m)
			step(twin)
			if c.layers > 0 {
				n := c.layers
				require.Equal(t, map[string]int{opForward: n, opInputGradient: n, opWeightGradient: n}, products)
			}
			require.Positive(t, products[opForward])
			require.Equal(t, products[opForward], products[opWeightGradient])
			for i, p := range m.Params() {
				require.Equal(t, twin.Params()[i].Grad, p.Grad, "seeing changes nothing: %s", p.Name)
			}
		})
	}
}
