package train

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
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

func someTokens(stream uint64, n, vocab int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(hash(7, stream, uint64(i)) % uint64(vocab))
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
				if _, err := m.Loss(tokens, targets, batch, seq); err != nil {
					panic(err)
				}
				return m.head.totalLoss() / (batch * seq)
			}
			loss()
			require.NoError(t, m.Backward())
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
		_, err := m.Loss(tokens, targets, 2, 6)
		require.NoError(t, err)
		require.NoError(t, m.Backward())
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

// TestWorkersDoNotMatter trains for a few steps, also with batches of changing
// shape, and compares the bits.
func TestWorkersDoNotMatter(t *testing.T) {
	cfg := Config{Vocab: 256, Dim: 24, Layers: 2, Heads: 6, KVHeads: 3, Hidden: 40, Context: 40}
	text := []byte("Of shoes and ships and sealing-wax, of cabbages and kings, and why the sea is boiling hot.")
	run := func(workers int) (bits []uint32) {
		cfg.Workers = workers
		m, err := NewLlama(cfg, 5)
		require.NoError(t, err)
		corpus, err := NewCorpus(text, 0, 3)
		require.NoError(t, err)
		optimizer := AdamW{Clip: 1, WeightDecay: 0.1, Workers: workers}
		for step, shape := range [][2]int{{3, 33}, {2, 40}, {5, 7}, {3, 33}} {
			tokens, targets, err := corpus.Batch(step, shape[0], shape[1])
			require.NoError(t, err)
			m.ZeroGrad()
			loss, err := m.Loss(tokens, targets, shape[0], shape[1])
			require.NoError(t, err)
			require.NoError(t, m.Backward())
			_, err = optimizer.Step(m.Params(), 1e-2)
			require.NoError(t, err)
			bits = append(bits, math.Float32bits(loss))
		}
		for _, p := range m.Params() {
			for _, v := range p.Value {
				bits = append(bits, math.Float32bits(v))
			}
		}
		return bits
	}
	one := run(1)
	require.Equal(t, goldenLosses, one[:len(goldenLosses)], "%#x", one[:len(goldenLosses)])
	for _, workers := range []int{2, 3, 8} {
		require.True(t, equalBits(one, run(workers)), "%d workers", workers)
	}
}

// goldenLosses were computed on amd64: every other machine must have the same.
var goldenLosses = []uint32{0x40B1F136, 0x40A9C98A, 0x409EA3DE, 0x40971C4A}

func equalBits(a, b []uint32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestOverfitsARepeatedText also has the model recite what it learned.
func TestOverfitsARepeatedText(t *testing.T) {
	line := "the quick brown fox jumps over the lazy dog. "
	var text []byte
	for range 20 {
		text = append(text, line...)
	}
	const batch, seq, steps = 4, 32, 80
	m, err := NewLlama(Config{Vocab: 256, Dim: 32, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 64, Context: 64}, 1)
	require.NoError(t, err)
	corpus, err := NewCorpus(text, 0, 1)
	require.NoError(t, err)
	schedule := Schedule{Peak: 1e-2, Final: 0.1, Warmup: 5, Steps: steps}
	optimizer := AdamW{Clip: 1, WeightDecay: 0.01}
	var first, loss float32
	for step := range steps {
		tokens, targets, err := corpus.Batch(step, batch, seq)
		require.NoError(t, err)
		m.ZeroGrad()
		loss, err = m.Loss(tokens, targets, batch, seq)
		require.NoError(t, err)
		require.NoError(t, m.Backward())
		_, err = optimizer.Step(m.Params(), schedule.At(step))
		require.NoError(t, err)
		if step == 0 {
			first = loss
		}
	}
	require.InDelta(t, math.Log(256), first, 0.2, "the first loss is that of guessing")
	require.Less(t, loss, float32(0.2))
	require.Equal(t, line, recite(t, m, line[:10], len(line)))
}

// recite continues prompt with the most likely bytes up to n bytes in all.
func recite(t *testing.T, m *Llama, prompt string, n int) string {
	t.Helper()
	tokens := make([]int32, 0, n)
	for _, b := range []byte(prompt) {
		tokens = append(tokens, int32(b))
	}
	text := []byte(prompt)
	for len(tokens) < n {
		logits, err := m.Logits(tokens, 1, len(tokens))
		require.NoError(t, err)
		best, last := 0, logits[len(logits)-m.Config().Vocab:]
		for i, v := range last {
			if v > last[best] {
				best = i
			}
		}
		tokens, text = append(tokens, int32(best)), append(text, byte(best))
	}
	return string(text)
}

func TestBuffersAreReused(t *testing.T) {
	m := livelyModel(t, tiny)
	buffers := func(batch, seq int) []*float32 {
		tokens := someTokens(1, batch*seq, tiny.Vocab)
		_, err := m.Loss(tokens, tokens, batch, seq)
		require.NoError(t, err)
		require.NoError(t, m.Backward())
		b := m.blocks[1]
		return []*float32{
			&m.head.logits[0], &m.head.dLogits[0], &m.embedding.out[0], &b.out[0], &b.inputs.attention[0],
			&b.attention.q[0], &b.attention.probs[0], &b.inputs.product[0], &m.scratch.dk[0], &m.scratch.dz[0],
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
		_, err := m.Loss(test.tokens, test.targets, test.batch, test.seq)
		require.ErrorContains(t, err, test.want)
		require.ErrorContains(t, m.Backward(), "without Loss")
	}
	_, err := m.Loss(ok, ok, 1, 6)
	require.NoError(t, err)
	require.NoError(t, m.Backward())
	require.Error(t, m.Backward(), "a second time")
}

func TestConfigErrorsNameTheField(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"Config.Vocab is 0":                      func(c *Config) { c.Vocab = 0 },
		"Config.Dim is 12":                       func(c *Config) { c.Dim = 12 },
		"Config.Layers is -1":                    func(c *Config) { c.Layers = -1 },
		"Config.KVHeads is 3: it must divide":    func(c *Config) { c.KVHeads = 3 },
		"Config.Context is 2000000":              func(c *Config) { c.Context = 2e6 },
		"Config.RopeTheta is 0.5":                func(c *Config) { c.RopeTheta = 0.5 },
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
