package train

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// ragged has no extent that a block divides, and more than one block along both.
func ragged() nn.Config {
	return nn.Config{Vocab: 128, Dim: 24, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 141, Context: 19, Workers: 1}
}

// randomFP8 rounds every operand at random.
func randomFP8() nn.FP8 {
	f := nn.DefaultFP8()
	for _, o := range []*nn.Operands{&f.Forward, &f.InputGradient, &f.WeightGradient} {
		o.A.Policy = fp8.Policy{Rounding: fp8.Stochastic, Seed: 3}
		o.B.Policy = o.A.Policy
	}
	return f
}

// withOperators rounds what every class of operators computes.
func withOperators(cfg nn.Config) nn.Config {
	for _, c := range nn.OperatorClasses() {
		c.Round(&cfg, nn.NarrowE4M3)
	}
	return cfg
}

func kept(cfg nn.Config, f nn.ActivationFormat) nn.Config {
	cfg.Activations = f
	return cfg
}

// steps trains a small model on a repeated text and returns the losses.
func steps(t *testing.T, cfg nn.Config, n int, listener tensor.Reporter) (*nn.Llama, []float32) {
	m, err := nn.NewLlama(cfg, 5)
	require.NoError(t, err)
	m.Listen(listener)
	o := optim.AdamW{Clip: 1}
	return m, resume(t, m, &o, 0, n)
}

func resume(t *testing.T, m *nn.Llama, o *optim.AdamW, from, n int) (losses []float32) {
	corpus, err := NewCorpus([]byte("the quick brown fox jumps over the lazy dog; the dog sleeps on. "), 0, 3)
	require.NoError(t, err)
	for step := from; step < from+n; step++ {
		tokens, targets, err := corpus.Batch(step, 4, 16)
		require.NoError(t, err)
		m.ZeroGrad()
		loss, err := m.Loss(t.Context(), tokens, targets, 4, 16)
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
		_, err = o.Step(t.Context(), m.Params(), 3e-3)
		require.NoError(t, err)
		m.EndStep()
		losses = append(losses, loss)
	}
	return losses
}

// sixRecipes differ in every operand, so that a recipe used in the wrong place
// shows.
func sixRecipes() nn.FP8 {
	recipe := func(p scaling.Profile, f fp8.Format, rows, cols int) scaling.Recipe {
		return scaling.Recipe{Profile: p, Format: f, Block: tensor.Block{Rows: rows, Cols: cols}}
	}
	return nn.FP8{
		Forward:        nn.Operands{A: recipe(scaling.TEBlock, fp8.E4M3, 1, 4), B: recipe(scaling.DeepGEMM, fp8.E4M3, 2, 4)},
		InputGradient:  nn.Operands{A: recipe(scaling.TEBlock, fp8.E5M2, 1, 2), B: recipe(scaling.DeepSeek, fp8.E4M3, 4, 2)},
		WeightGradient: nn.Operands{A: recipe(scaling.MTFP8, fp8.E5M2, 1, 3), B: recipe(scaling.TECurrentPow2, fp8.E4M3, 1, 0)},
	}
}

func small() nn.Config {
	return nn.Config{Vocab: 128, Dim: 32, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 48, Context: 16}
}

func withFP8(cfg nn.Config, f nn.FP8) nn.Config {
	cfg.FP8 = &f
	return cfg
}

// threeNarrowings differ in every role, so that one used in the wrong place shows.
func threeNarrowings() nn.Rounding {
	return nn.Rounding{
		Input:    nn.Narrowing{Format: nn.NarrowE2M3, Block: tensor.Block{Rows: 1, Cols: 4}},
		Weight:   nn.Narrowing{Format: nn.NarrowE4M3, Block: tensor.Block{Rows: 2, Cols: 3}, ExactScale: true},
		Gradient: nn.Narrowing{Format: nn.NarrowE3M2, Block: tensor.Block{Rows: 3, Cols: 0}},
	}
}

func stochasticFP8(f nn.FP8, seed uint64) nn.FP8 {
	f.Stochastic, f.Seed = true, seed
	return f
}

func someTokens(stream uint64, n, vocab int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(random.Hash(7, stream, uint64(i)) % uint64(vocab))
	}
	return tokens
}

// trained runs steps on batches of changing, ragged shapes, and returns all that a
// run is after them, gradients and losses included.
func trained(t *testing.T, cfg nn.Config) map[string][]byte {
	m, o := newRun(t, cfg, optim.Moments{}, 5)
	losses := ""
	for step, shape := range [][2]int{{8, 17}, {1, 3}, {9, 19}} {
		tokens := someTokens(uint64(step), shape[0]*shape[1], cfg.Vocab)
		m.ZeroGrad()
		loss, err := m.Loss(t.Context(), tokens, tokens, shape[0], shape[1])
		require.NoError(t, err)
		require.NoError(t, m.Backward(t.Context()))
		_, err = o.Step(t.Context(), m.Params(), 1e-2)
		require.NoError(t, err)
		m.EndStep()
		losses += fmt.Sprint(math.Float32bits(loss), " ")
	}
	all := bitsOf(m, o)
	all["losses"] = []byte(losses)
	for _, p := range m.Params() {
		data := make([]byte, 4*len(p.Grad))
		arrays.Floats(p.Grad).Put(data, 0, len(p.Grad))
		all["gradient of "+p.Name] = data
	}
	return all
}

func requireSameRun(t *testing.T, want, got map[string][]byte, what any) {
	t.Helper()
	require.Len(t, got, len(want))
	for name, w := range want {
		require.Equal(t, w, got[name], "%v: %s", what, name)
	}
}

var tiny = nn.Config{Vocab: 11, Dim: 8, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 12, Context: 6}
