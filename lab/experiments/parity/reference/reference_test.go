package reference

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
)

var tiny = Model{Vocab: 11, Dim: 12, Layers: 2, Heads: 2, Hidden: 20, Theta: 10000, Eps: 1e-5}

// parameters are random ones, larger than those of a new model so that nothing is linear.
func parameters(t *testing.T, m Model, seed uint64) (*nn.Llama, Values) {
	t.Helper()
	c := nn.Config{
		Vocab: m.Vocab, Dim: m.Dim, Layers: m.Layers, Heads: m.Heads, Hidden: m.Hidden, Context: 8,
	}
	llama, err := nn.NewLlama(c, seed)
	require.NoError(t, err)
	random, w := rand.New(rand.NewPCG(seed, 0)), make(Values)
	for _, p := range llama.Params() {
		w[p.Name] = make([]float64, len(p.Value))
		for i := range p.Value {
			p.Value[i] = float32(0.4 * random.NormFloat64())
			if p.Rows == 1 {
				p.Value[i]++
			}
			w[p.Name][i] = float64(p.Value[i])
		}
	}
	return llama, w
}

var tokens, targets = []int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3}, []int32{1, 4, 1, 5, 9, 2, 6, 5, 3, 5}

// TestFiniteDifferences: gradients are what the loss does when a parameter moves.
func TestFiniteDifferences(t *testing.T) {
	_, w := parameters(t, tiny, 1)
	_, g, err := tiny.Gradients(t.Context(), w, tokens, targets, 5, Exact)
	require.NoError(t, err)
	require.Len(t, g, len(w))
	loss := func() float64 {
		l, _, err := tiny.Gradients(t.Context(), w, tokens, targets, 5, Exact)
		require.NoError(t, err)
		return l
	}
	const h = 1e-5
	for name, values := range w {
		for _, i := range []int{0, len(values) / 2, len(values) - 1} {
			old := values[i]
			values[i] = old + h
			up := loss()
			values[i] = old - h
			down := loss()
			values[i] = old
			require.InDelta(t, (up-down)/(2*h), g[name][i], 1e-8, "%s %d", name, i)
		}
	}
}

// TestAgainstNN: package nn computes the same in FP32.
func TestAgainstNN(t *testing.T) {
	llama, w := parameters(t, tiny, 2)
	want, g, err := tiny.Gradients(t.Context(), w, tokens, targets, 5, Exact)
	require.NoError(t, err)
	loss, err := llama.Loss(t.Context(), tokens, targets, 2, 5)
	require.NoError(t, err)
	require.InDelta(t, want, loss, 1e-5)
	require.NoError(t, llama.Backward(t.Context()))
	for _, p := range llama.Params() {
		var off, all float64
		for i, v := range p.Grad {
			off += math.Pow(float64(v)-g[p.Name][i], 2)
			all += math.Pow(g[p.Name][i], 2)
		}
		require.Positive(t, all, p.Name)
		require.Less(t, math.Sqrt(off/all), 1e-5, p.Name)
	}
}
