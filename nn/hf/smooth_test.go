package hf_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
)

// smoothed are models whose structures have all inputs that can be smoothed.
var smoothed = map[string]nn.Config{
	"grouped queries": {Vocab: 50, Dim: 32, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 48, Context: 16},
	"latents and experts": {
		Vocab: 50, Dim: 32, Layers: 3, Heads: 4, Hidden: 48, Context: 16, TieHead: true, Dense: 1,
		MLA: &nn.MLAConfig{QueryRank: 12, KVRank: 16, NoPE: 8, RoPE: 4, Value: 6},
		Experts: &nn.ExpertsConfig{
			Hidden: 24, Shared: 1, Router: nn.RouterConfig{Experts: 4, TopK: 2},
		},
	},
}

// TestSmooth checks that a folded model gives the same bits, and that channels that were much
// larger than others no longer are.
func TestSmooth(t *testing.T) {
	tokens := [][]int32{{1, 40, 7, 7, 22, 13, 49, 0, 3}, {9, 8, 7, 31}}
	for name, c := range smoothed {
		t.Run(name, func(t *testing.T) {
			m, err := nn.NewLlama(c, 7)
			require.NoError(t, err)
			for _, p := range m.Params() {
				for i := range p.Value {
					p.Value[i] = bf16(p.Value[i])
					if p.Rows == 1 && i%8 == 3 {
						p.Value[i] *= 64 // an outlier of a channel
					}
				}
			}
			var before [][]float32
			for _, s := range tokens {
				logits, err := m.Logits(t.Context(), s, 1, len(s))
				require.NoError(t, err)
				before = append(before, slices.Clone(logits))
			}
			wide := spread(t, m, tokens)
			done, err := hf.Smooth(t.Context(), m, tokens, hf.SmoothOptions{BF16: true})
			require.NoError(t, err)
			for i, s := range tokens {
				logits, err := m.Logits(t.Context(), s, 1, len(s))
				require.NoError(t, err)
				require.Equal(t, before[i], logits)
			}
			require.Greater(t, done.Channels, 32)
			require.Equal(t, 13, done.Tokens)
			require.Less(t, spread(t, m, tokens), wide/4)
			for _, p := range m.Params() {
				for i, x := range p.Value {
					require.Equal(t, bf16(x), x, "%s %d", p.Name, i)
				}
			}
		})
	}
}

// TestSmoothRefuses checks what cannot be smoothed, and that values stay exact where a factor
// would carry them out of the range of BF16.
func TestSmoothRefuses(t *testing.T) {
	m, err := nn.NewLlama(smoothed["grouped queries"], 7)
	require.NoError(t, err)
	_, err = hf.Smooth(t.Context(), m, nil, hf.SmoothOptions{})
	require.ErrorIs(t, err, nn.ErrInput)
	_, err = hf.Smooth(t.Context(), m, [][]int32{{1}}, hf.SmoothOptions{Strength: 2})
	require.ErrorContains(t, err, "SmoothOptions.Strength is 2")
	gain := m.Param("model.layers.0.input_layernorm.weight").Value
	gain[0] = float32(math.Inf(1))
	_, err = hf.Smooth(t.Context(), m, [][]int32{{1, 2}}, hf.SmoothOptions{})
	require.ErrorIs(t, err, hf.ErrNotFinite)

	gain[0] = 0x1p-100
	m.Param("model.layers.0.self_attn.q_proj.weight").Value[0] = 0x1.fep-100
	done, err := hf.Smooth(t.Context(), m, [][]int32{{1, 2}}, hf.SmoothOptions{})
	require.NoError(t, err)
	q := m.Param("model.layers.0.self_attn.q_proj.weight").Value[0]
	fraction, _ := math.Frexp(float64(q))
	require.Equal(t, 0x1.fep-1, fraction)
	require.Positive(t, done.Limited)
	require.Contains(t, done.String(), "so that no value would lose a bit")
}

// spread returns how many times the largest channel of layer 1's input of attention is the
// median one.
func spread(t *testing.T, m *nn.Llama, tokens [][]int32) float64 {
	var most []float64
	m.Shared().Tap = func(name string, values []float32, _, cols int) {
		if name != "model.layers.1.input_layernorm.output" {
			return
		}
		most = slices.Grow(most, cols)[:cols]
		for i, x := range values {
			most[i%cols] = max(most[i%cols], math.Abs(float64(x)))
		}
	}
	defer func() { m.Shared().Tap = nil }()
	for _, s := range tokens {
		_, err := m.Logits(t.Context(), s, 1, len(s))
		require.NoError(t, err)
	}
	slices.Sort(most)
	return most[len(most)-1] / most[len(most)/2]
}

// bf16 returns x cut off to BF16.
func bf16(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ 0xffff) }
