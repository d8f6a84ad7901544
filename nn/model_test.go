package nn

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/scaling"
)

// livelyModel has weights so large that attention is far from uniform and every
// gradient is far above rounding.
func livelyModel(t *testing.T, cfg Config) *Llama {
	t.Helper()
	m, err := NewLlama(cfg, 1)
	require.NoError(t, err)
	for i, p := range m.Params() {
		for j, v := range randoms(uint64(i), len(p.Value)) {
			if p.Decay {
				p.Value[j] = v / 2
			} else {
				p.Value[j] = 1 + v/4
			}
		}
	}
	return m
}

// TestConcurrent: a pass while another one goes on is refused: here ones from a listener, within the
// other.
func TestConcurrent(t *testing.T) {
	recipe := ProfileFP8(scaling.TECurrent, fp8.E4M3)
	m := livelyModel(t, Config{Vocab: 11, Dim: 8, Layers: 1, Heads: 2, Hidden: 8, Context: 8, FP8: &recipe, Workers: 1})
	tokens := someTokens(1, 4, 11)
	want, err := m.Loss(t.Context(), tokens, tokens, 1, 4)
	require.NoError(t, err)
	uses := map[string]func() error{
		"Forward":        func() error { _, err := m.Forward(t.Context(), tokens, 1, 4); return err },
		"Logits":         func() error { _, err := m.Logits(t.Context(), tokens, 1, 4); return err },
		"Loss":           func() error { _, err := m.Loss(t.Context(), tokens, tokens, 1, 4); return err },
		"Evaluate":       func() error { _, err := m.Evaluate(t.Context(), tokens, tokens, 1, 4); return err },
		"Backward":       func() error { return m.Backward(t.Context()) },
		"BackwardLogits": func() error { return m.BackwardLogits(t.Context(), nil) },
	}
	heard := 0
	m.Listen(reporterFunc(func() {
		heard++
		for name, use := range uses {
			require.ErrorIs(t, use(), ErrConcurrent, name)
		}
	}))
	got, err := m.Loss(t.Context(), tokens, tokens, 1, 4)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.NoError(t, m.Backward(t.Context()))
	require.Positive(t, heard)
}

// reporterFunc is called whenever a block was encoded.
type reporterFunc func()

func (f reporterFunc) Block(string, string, int, int, float32, *fp8.Stats) { f() }
func (f reporterFunc) NonFinite(string, string, int, float64)              { f() }

func someTokens(stream uint64, n, vocab int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(random.Hash(7, stream, uint64(i)) % uint64(vocab))
	}
	return tokens
}

func TestGradientOfEveryParameter(t *testing.T) {
	const batch, seq = 2, 6
	for name, tied := range map[string]bool{"untied": false, "tied": true} {
		t.Run(name, func(t *testing.T) {
			cfg := tiny
			cfg.TieHead, cfg.Workers = tied, 1
			m := livelyModel(t, cfg)
			tokens, targets := someTokens(1, batch*seq, cfg.Vocab), someTokens(2, batch*seq, cfg.Vocab)
			loss := func() float64 {
				if _, err := m.Loss(t.Context(), tokens, targets, batch, seq); err != nil {
					panic(err)
				}
				return m.loss.total() / (batch * seq)
			}
			loss()
			require.NoError(t, m.Backward(t.Context()))
			for _, p := range m.Params() {
				requireGradient(t, p.Name, p.Grad, p.Value, loss)
			}
		})
	}
}

func TestBackwardAccumulates(t *testing.T) {
	m := livelyModel(t, tiny)
	tokens, targets := someTokens(1, 12, tiny.Vocab), someTokens(2, 12, tiny.Vocab)
	step := func() {
		_, err := m.Loss(t.Context(), tokens, targets, 2, 6)
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
	}
	step()
	once := make([][]float32, len(m.Params()))
	for i, p := range m.Params() {
		once[i] = append(once[i], p.Grad...)
	}
	step()
	for i, p := range m.Params() {
		for j, g := range once[i] {
			require.InDelta(t, 2*g, p.Grad[j], 1e-5, p.Name)
		}
	}
	m.ZeroGrad()
	step()
	for i, p := range m.Params() {
		require.Equal(t, once[i], p.Grad, p.Name)
	}
}

func TestBuffersAreReused(t *testing.T) {
	m := livelyModel(t, tiny)
	buffers := func(batch, seq int) []*float32 {
		tokens := someTokens(1, batch*seq, tiny.Vocab)
		_, err := m.Loss(t.Context(), tokens, tokens, batch, seq)
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
		b := m.blocks[1]
		return []*float32{
			&m.logits[0], &m.dLogits[0], &m.stream[0][0], &m.stream[2][0], &(*b.attentionInput)[0],
			&b.Attention.q[0], &b.Attention.probs[0], &(*b.MLP.product)[0], &m.shared.scratch.dk[0], &m.shared.scratch.dz[0],
		}
	}
	first := buffers(2, 6)
	for _, shape := range [][2]int{{1, 6}, {3, 4}, {2, 6}} {
		for i, p := range buffers(shape[0], shape[1]) {
			require.Same(t, first[i], p, "buffer %d, shape %v", i, shape)
		}
	}
}

func TestCallsThatMakeNoSense(t *testing.T) {
	m := livelyModel(t, tiny)
	ok := make([]int32, 6)
	for _, test := range []struct {
		tokens, targets []int32
		batch, seq      int
		want            string
	}{
		{ok, ok, 0, 6, "batch is 0"},
		{ok, ok, 1, 7, "seq is 7: it must be from 1 to Config.Context = 6"},
		{ok, ok, 1, 0, "seq is 0"},
		{ok, ok, 2, 6, "6 targets: there must be batch·seq = 2·6"},
		{ok[:5], ok, 1, 6, "5 tokens"},
		{[]int32{0, 11}, ok[:2], 1, 2, "tokens[1] is 11: it must be from 0 to 10"},
		{ok[:1], []int32{-1}, 1, 1, "targets[0] is -1"},
	} {
		_, err := m.Loss(t.Context(), test.tokens, test.targets, test.batch, test.seq)
		require.ErrorContains(t, err, test.want)
		require.ErrorContains(t, m.Backward(t.Context()), "without Loss")
	}
	_, err := m.Loss(t.Context(), ok, ok, 1, 6)
	require.NoError(t, err)
	require.NoError(t, m.Backward(t.Context()))
	require.Error(t, m.Backward(t.Context()), "a second time")
}

func TestConfigErrorsNameTheField(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"Config.Vocab is 0":                      func(c *Config) { c.Vocab = 0 },
		"Config.Dim is 12":                       func(c *Config) { c.Dim = 12 },
		"Config.Layers is -1":                    func(c *Config) { c.Layers = -1 },
		"Config.KVHeads is 3: it must divide":    func(c *Config) { c.KVHeads = 3 },
		"Config.Context is 2000000":              func(c *Config) { c.Context = 2e6 },
		"Config.RopeTheta is 0.5":                func(c *Config) { c.RopeTheta = 0.5 },
		"Config.RopeScaling.Factor is 0.5":       func(c *Config) { c.RopeScaling.Factor = 0.5 },
		"Config.RopeScaling.Factor is NaN":       func(c *Config) { c.RopeScaling.Factor = math.NaN() },
		"Config.RopeScaling.Factor is 0:":        func(c *Config) { c.RopeScaling.Original = 8 },
		"Config.RopeScaling.Original is 0:":      func(c *Config) { c.RopeScaling = RopeScaling{Factor: 2, Low: 1, High: 2} },
		"Config.RopeScaling.Low is 2 and High 2": func(c *Config) { c.RopeScaling = RopeScaling{Factor: 2, Original: 9, Low: 2, High: 2} },
		"Config.NormEps is NaN":                  func(c *Config) { c.NormEps = math.NaN() },
		"Config.Workers is -2: it must not be n": func(c *Config) { c.Workers = -2 },
	} {
		cfg := tiny
		change(&cfg)
		_, err := NewLlama(cfg, 1)
		require.ErrorContains(t, err, want)
	}
}

func TestNamesAreThoseOfACheckpoint(t *testing.T) {
	m := livelyModel(t, tiny)
	require.Len(t, m.Params(), 1+2*9+2)
	for _, name := range []string{
		"model.embed_tokens.weight", "model.layers.1.self_attn.k_proj.weight",
		"model.layers.0.input_layernorm.weight", "model.norm.weight", "lm_head.weight",
	} {
		require.NotNil(t, m.Param(name), name)
	}
	require.Nil(t, m.Param("no such"))
	require.False(t, m.Param("model.norm.weight").Decay)
	require.Equal(t, 4, m.Param("model.layers.1.self_attn.k_proj.weight").Rows)
}

func TestNormalIsNormal(t *testing.T) {
	const n = 100_000
	var sum, squares float64
	for _, v := range randoms(1, n) {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	require.InDelta(t, 0, sum/n, 0.01)
	require.InDelta(t, 1, squares/n, 0.02)
}
