package train

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// TestWorkersDoNotMatter trains for a few steps, also with batches of changing
// shape, and compares the bits.
func TestWorkersDoNotMatter(t *testing.T) {
	cfg := nn.Config{Vocab: 256, Dim: 24, Layers: 2, Heads: 6, KVHeads: 3, Hidden: 40, Context: 40}
	text := []byte("Of shoes and ships and sealing-wax, of cabbages and kings, and why the sea is boiling hot.")
	run := func(workers int) (bits []uint32) {
		cfg.Workers = workers
		m, err := nn.NewLlama(cfg, 5)
		require.NoError(t, err)
		corpus, err := NewCorpus(text, 0, 3)
		require.NoError(t, err)
		optimizer := optim.AdamW{Clip: 1, WeightDecay: 0.1, Workers: workers}
		for step, shape := range [][2]int{{3, 33}, {2, 40}, {5, 7}, {3, 33}} {
			tokens, targets, err := corpus.Batch(step, shape[0], shape[1])
			require.NoError(t, err)
			m.ZeroGrad()
			loss, err := m.Loss(t.Context(), tokens, targets, shape[0], shape[1])
			require.NoError(t, err)
			require.NoError(t, m.Backward(t.Context()))
			_, err = optimizer.Step(t.Context(), m.Params(), 1e-2)
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
	m, err := nn.NewLlama(nn.Config{Vocab: 256, Dim: 32, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 64, Context: 64}, 1)
	require.NoError(t, err)
	corpus, err := NewCorpus(text, 0, 1)
	require.NoError(t, err)
	schedule := optim.Schedule{Peak: 1e-2, Final: 0.1, Warmup: 5, Steps: steps}
	optimizer := optim.AdamW{Clip: 1, WeightDecay: 0.01}
	var first, loss float32
	for step := range steps {
		tokens, targets, err := corpus.Batch(step, batch, seq)
		require.NoError(t, err)
		m.ZeroGrad()
		loss, err = m.Loss(t.Context(), tokens, targets, batch, seq)
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
		_, err = optimizer.Step(t.Context(), m.Params(), schedule.At(step))
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
func recite(t *testing.T, m *nn.Llama, prompt string, n int) string {
	t.Helper()
	tokens := make([]int32, 0, n)
	for _, b := range []byte(prompt) {
		tokens = append(tokens, int32(b))
	}
	text := []byte(prompt)
	for len(tokens) < n {
		logits, err := m.Logits(t.Context(), tokens, 1, len(tokens))
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

// TestShardsArePasses: replicas count as one model would, also where a shard fails.
func TestShardsArePasses(t *testing.T) {
	for _, replicas := range []int{1, 2, 3} {
		m, err := nn.NewLlama(withFP8(small(), stochasticFP8(nn.DefaultFP8(), 3)), 1)
		require.NoError(t, err)
		d, err := NewDataParallel(m, replicas, m.Replica)
		require.NoError(t, err)
		shards := shardsOf(t, 5, 0)
		_, _, err = d.Gradients(t.Context(), len(shards), LlamaGradients(shards, 1, 16))
		require.NoError(t, err)
		require.EqualValues(t, 5, m.Shared().Scaling().State().Backwards)
		shards[4].Tokens = nil
		_, _, err = d.Gradients(t.Context(), len(shards), LlamaGradients(shards, 1, 16))
		require.ErrorContains(t, err, "shard 4")
		require.EqualValues(t, 10, m.Shared().Scaling().State().Backwards)
	}
}

// TestMomentsTrain is the toy run of the other tests: every format learns as FP32
// does.
func TestMomentsTrain(t *testing.T) {
	const n = 60
	want := 0.0
	for _, format := range optim.MomentFormats() {
		m, err := nn.NewLlama(small(), 5)
		require.NoError(t, err)
		o := optim.AdamW{Clip: 1, Moments: optim.Moments{Format: format}}
		losses := resume(t, m, &o, 0, n)
		last := float64(losses[n-1])
		parameters := 0
		for _, p := range m.Params() {
			parameters += len(p.Value)
		}
		t.Logf("%-12v %.4f bytes a parameter, loss %.4f after %d steps", format, float64(o.MomentBytes())/float64(parameters), last, n)
		if format == optim.MomentsFP32 {
			want = last
		}
		require.InEpsilon(t, want, last, 0.05, "%v", format)
	}
}
