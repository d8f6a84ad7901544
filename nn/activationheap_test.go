//go:build !race

package nn

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// heapBytes is what is reachable.
func heapBytes() int {
	runtime.GC()
	runtime.GC() // pools let go of what they kept through the first
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

// TestHeapHoldsActivationBytes compares the memory that Loss and Backward take in
// models of two depths. What layers share is the same in both, so that Loss takes
// as much more in the deeper as it counts, and Backward takes no more.
func TestHeapHoldsActivationBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half an hour where another processor is emulated")
	}
	const batch, seq, shallow, deep = 8, 64, 1, 5
	tokens := someTokens(1, batch*seq, 256)
	type figures struct{ counted, loss, backward int }
	measure := func(f ActivationFormat, layers int) (got figures) {
		cfg := Config{Vocab: 256, Dim: 128, Layers: layers, Heads: 4, Hidden: 344, Context: seq}
		m, err := NewLlama(kept(withFP8(cfg, DefaultFP8()), f), 1)
		require.NoError(t, err)
		before := heapBytes()
		_, err = m.Loss(t.Context(), tokens, tokens, batch, seq)
		require.NoError(t, err)
		afterLoss := heapBytes()
		require.NoError(t, m.Backward(t.Context()))
		got = figures{m.ActivationBytes().Total(), afterLoss - before, heapBytes() - afterLoss}
		runtime.KeepAlive(m)
		return got
	}
	totals := map[ActivationFormat]int{}
	for _, f := range ActivationFormats() {
		small, large := measure(f, shallow), measure(f, deep)
		t.Logf("%v: %d layer %+v, %d layers %+v", f, shallow, small, deep, large)
		require.InEpsilon(t, large.counted-small.counted, large.loss-small.loss, 0.02, f)
		require.InDelta(t, large.backward, small.backward, 0.01*float64(large.counted), f)
		require.Greater(t, large.loss, large.counted, f)
		totals[f] = large.counted
	}
	require.Less(t, totals[ActivationsFP8], totals[ActivationsFP32]*7/10)
	require.Less(t, totals[ActivationsFP8SwiGLU], totals[ActivationsFP32]*45/100)
}

// TestInferenceKeepsNothing compares the memory that Logits takes in models of two depths:
// layers take turns in it, but for two numbers a token and layer of the norms.
func TestInferenceKeepsNothing(t *testing.T) {
	const batch, seq, dim = 4, 32, 64
	tokens := someTokens(1, batch*seq, 64)
	bf16 := DefaultRounding(NarrowBF16)
	for name, cfg := range map[string]Config{
		"FP32": {}, "BF16": {Rounding: &bf16}, "FP8": withFP8(Config{}, DefaultFP8()),
	} {
		cfg.Vocab, cfg.Dim, cfg.Heads, cfg.Hidden, cfg.Context = 64, dim, 4, 172, seq
		measure := func(layers int) int {
			cfg.Layers = layers
			m, err := NewLlama(cfg, 1)
			require.NoError(t, err)
			before := heapBytes()
			_, err = m.Logits(t.Context(), tokens, batch, seq)
			require.NoError(t, err)
			taken := heapBytes() - before
			runtime.KeepAlive(m)
			return taken
		}
		// What else there may be is less than one activation.
		require.Less(t, measure(9)-measure(1), 8*2*4*batch*seq+4*batch*seq*dim, name)
	}
}

// TestHeapHoldsPlans compares the memory that a step of training takes under policies with
// that where all is kept: it is less by what the plans differ in.
func TestHeapHoldsPlans(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half an hour where another processor is emulated")
	}
	const batch, seq = 8, 64
	tokens := someTokens(1, batch*seq, 256)
	cfg := Config{Vocab: 256, Dim: 128, Layers: 5, Heads: 4, Hidden: 344, Context: seq}
	measure := func(cfg Config) (planned, heap int) {
		plan, err := cfg.PlanActivations(batch, seq)
		require.NoError(t, err)
		m, err := NewLlama(cfg, 1)
		require.NoError(t, err)
		before := heapBytes()
		_, err = m.Loss(t.Context(), tokens, tokens, batch, seq)
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
		heap = heapBytes() - before
		runtime.KeepAlive(m)
		return int(plan.Total()), heap
	}
	all, heap := measure(cfg)
	policies := somePolicies(ActivationsFP32, false, 1, 2)
	for _, p := range policies[1:] {
		planned, taken := measure(alike(cfg, p))
		require.InDelta(t, all-planned, heap-taken, 0.01*float64(all), p)
	}
	plan, err := cfg.SearchPolicies(batch, seq, int64(all)*3/10)
	require.NoError(t, err)
	cfg.Policies = plan.Policies
	planned, taken := measure(cfg)
	require.LessOrEqual(t, planned, all*3/10)
	require.InDelta(t, all-planned, heap-taken, 0.01*float64(all))
}
