package nn

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/swiglu"
)

// mixture is a small model of DeepSeek-V3's kind.
func mixture() Config {
	return Config{
		Vocab: 31, Dim: 32, Layers: 3, Heads: 2, Hidden: 48, Context: 16, Dense: 1,
		MLA: &MLAConfig{QueryRank: 12, KVRank: 10, NoPE: 8, RoPE: 4, Value: 12, NormEps: 3e-4},
		Experts: &ExpertsConfig{Hidden: 20, Shared: 2, Router: RouterConfig{
			Experts: 8, TopK: 2, Scale: 2.5, Groups: 4, TopGroups: 2, BiasRate: 0.01, BalanceLoss: 0.001,
		}},
	}
}

// TestMixtureGradient compares all gradients of a model with difference quotients of its
// loss and balance loss. All experts are chosen, so that there are no jumps.
func TestMixtureGradient(t *testing.T) {
	cfg := mixture()
	cfg.Vocab, cfg.Dim, cfg.Layers, cfg.Context = 5, 4, 2, 3
	cfg.Hidden = 5
	cfg.MLA = &MLAConfig{QueryRank: 3, KVRank: 3, NoPE: 2, RoPE: 2, Value: 3}
	cfg.Experts = &ExpertsConfig{Hidden: 3, Shared: 1, Router: RouterConfig{Experts: 2, TopK: 2, BalanceLoss: 0.5}}
	m, err := NewLlama(cfg, 1)
	require.NoError(t, err)
	for i, p := range m.Params() {
		if p.Decay {
			p.Randomize(3, uint64(i), 0.5)
		}
	}
	tokens, targets := []int32{0, 3, 1, 4, 2, 2}, []int32{3, 1, 0, 2, 4, 1}
	loss := func() float64 {
		l, err := m.Loss(context.Background(), tokens, targets, 2, 3)
		must(err)
		return 2 * (float64(l) + float64(m.BalanceLoss()))
	}
	loss()
	require.NoError(t, m.BackwardScaled(t.Context(), 2))
	require.Positive(t, m.BalanceLoss())
	for _, p := range m.Params() {
		grad := slices.Clone(p.Grad)
		if p.Name != embeddingName { // tokens that do not occur have none
			requireGradient(t, p.Name, grad, p.Value, loss)
		}
	}
}

// TestMixtureShapes: what a configuration says of parameters is what the model has.
func TestMixtureShapes(t *testing.T) {
	all, grouped, direct := mixture(), mixture(), mixture()
	grouped.MLA, grouped.KVHeads, grouped.Dense = nil, 1, 0
	direct.MLA.QueryRank, direct.Experts, direct.Dense = 0, nil, 0
	for _, cfg := range []Config{all, grouped, direct} {
		m, err := NewLlama(cfg, 1)
		require.NoError(t, err)
		var n uint64
		var shapes []Shape
		for _, p := range m.Params() {
			shapes = append(shapes, Shape{p.Name, p.Rows, p.Cols})
			n += uint64(len(p.Value))
		}
		require.Equal(t, shapes, slices.Collect(m.Config().Shapes()))
		require.Equal(t, n, m.Config().parameters())

		text, err := json.Marshal(m.Describe())
		require.NoError(t, err)
		d := Description{}
		require.NoError(t, json.Unmarshal(text, &d))
		parsed, err := ParseConfig(d)
		require.NoError(t, err)
		again, err := NewZeroLlama(parsed)
		require.NoError(t, err)
		require.Equal(t, m.Describe(), again.Describe())
	}
	m, err := NewLlama(all, 1)
	require.NoError(t, err)
	require.Nil(t, m.Blocks()[0].Experts)
	require.Nil(t, m.Blocks()[1].MLP)
	require.NotNil(t, m.Param("model.layers.2.mlp.experts.7.down_proj.weight"))
	require.NotNil(t, m.Param("model.layers.1.mlp.gate.weight"))
}

// TestMixtureConfigs names what is wrong.
func TestMixtureConfigs(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"Config.Dense is 4":      func(c *Config) { c.Dense = 4 },
		"without Experts 0":      func(c *Config) { c.Experts = nil },
		"KVHeads is 1":           func(c *Config) { c.KVHeads = 1 },
		"Config.MLA: Dim":        func(c *Config) { c.MLA.Dim = 32 },
		"Config.Experts.Dim":     func(c *Config) { c.Experts.Dim = 32 },
		"experts have none":      func(c *Config) { c.Smoothing = new(swiglu.Smoothing) },
		"MLAConfig.KVRank is 0":  func(c *Config) { c.MLA.KVRank = 0 },
		"RouterConfig.TopK is 0": func(c *Config) { c.Experts.Router.TopK = 0 },
	} {
		c := mixture()
		change(&c)
		require.ErrorIs(t, c.Validate(), ErrConfig)
		require.ErrorContains(t, c.Validate(), want)
	}
}

// trainMixture returns the losses of a few steps of gradient descent, on text that repeats.
func trainMixture(t *testing.T, cfg Config, seed uint64, steps int) (m *Llama, losses []float64) {
	m, err := NewLlama(cfg, seed)
	require.NoError(t, err)
	for step := range steps {
		tokens, targets := make([]int32, 64), make([]int32, 64)
		for i := range tokens {
			at := i + step*7 + int(seed)
			tokens[i], targets[i] = int32(at*at%29), int32((at+1)*(at+1)%29)
		}
		m.ZeroGrad()
		loss, err := m.Loss(t.Context(), tokens, targets, 4, 16)
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
		for _, p := range m.Params() {
			for i, g := range p.Grad {
				p.Value[i] -= float32(0.5 * g)
			}
		}
		m.EndStep()
		losses = append(losses, float64(loss))
	}
	return m, losses
}

// TestMixtureParity: over seeds, FP8 trains as BF16 does. It is a look; the lab is where the
// question is asked in earnest.
func TestMixtureParity(t *testing.T) {
	const seeds, steps = 3, 12
	bf16 := DefaultRounding(NarrowBF16)
	final := map[string]float64{}
	for seed := range uint64(seeds) {
		for name, apply := range map[string]func(*Config){
			"bf16":        func(c *Config) { c.Rounding = &bf16 },
			"fp8":         func(c *Config) { Recipes()[0].Apply(c, seed) },
			"deepseek-v3": func(c *Config) { deepSeekV3().Apply(c, seed) },
		} {
			cfg := mixture()
			apply(&cfg)
			m, losses := trainMixture(t, cfg, seed, steps)
			require.Less(t, losses[steps-1], 0.95*losses[0], name)
			final[name] += losses[steps-1] / seeds
			require.NotEqual(t, make([]float32, 8), m.Blocks()[1].Experts.Router.Bias(), "biases move")
			require.Positive(t, m.ActivationBytes().Total())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(final)) {
		require.InEpsilon(t, final["bf16"], final[name], 0.02, name)
	}
}

// TestMixtureInference leaves no trace, and gives the loss of training.
func TestMixtureInference(t *testing.T) {
	cfg := mixture()
	deepSeekV3().Apply(&cfg, 1)
	m, err := NewLlama(cfg, 1)
	require.NoError(t, err)
	tokens, targets := make([]int32, 32), make([]int32, 32)
	for i := range tokens {
		tokens[i], targets[i] = int32(i%31), int32((i+1)%31)
	}
	want, err := m.Loss(t.Context(), tokens, targets, 2, 16)
	require.NoError(t, err)
	require.NoError(t, m.Backward(t.Context()))
	before := m.Shared().Scaling().State()
	require.EqualValues(t, 64, sumOf(before.Routers["model.layers.1.mlp.gate"].Load))
	got, err := m.Evaluate(t.Context(), tokens, targets, 2, 16)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, before, m.Shared().Scaling().State())
	require.ErrorIs(t, m.Backward(t.Context()), ErrInput)
}

func sumOf(load []int64) (sum int64) {
	for _, n := range load {
		sum += n
	}
	return sum
}

// TestBalanceLossIsScaled: all gradients of twice the loss are twice as large, those of the
// balance loss among them, which add to those of the loss.
func TestBalanceLossIsScaled(t *testing.T) {
	gradients := func(factor float64, scale float32) []float32 {
		cfg := mixture()
		cfg.Experts.Router.BalanceLoss = factor
		m, err := NewLlama(cfg, 1)
		require.NoError(t, err)
		tokens, targets := make([]int32, 32), make([]int32, 32)
		for i := range tokens {
			tokens[i], targets[i] = int32(i*i%31), int32(i%7)
		}
		_, err = m.Loss(t.Context(), tokens, targets, 2, 16)
		require.NoError(t, err)
		require.NoError(t, m.BackwardScaled(t.Context(), scale))
		return m.Param("model.layers.1.mlp.gate.weight").Grad
	}
	once, twice := gradients(0.5, 1), gradients(0.5, 2)
	for i := range once {
		once[i] *= 2
	}
	require.Equal(t, once, twice)
	require.NotEqual(t, gradients(0, 2), twice)
}
