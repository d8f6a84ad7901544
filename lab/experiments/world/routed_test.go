package world

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/nn"
)

// tinyModel returns a model with experts, and a batch.
func tinyModel(t *testing.T) (m *nn.Llama, tokens, targets []int32) {
	c := routedConfig(labtest.Short())
	c.Vocab, c.Dim, c.Layers, c.Hidden, c.Experts.Hidden, c.Context = 17, 16, 2, 24, 12, 8
	m, err := nn.NewLlama(c, 3)
	require.NoError(t, err)
	for i := range 3 * 8 {
		tokens, targets = append(tokens, int32(i*7%17)), append(targets, int32(i*5%17))
	}
	return m, tokens, targets
}

// TestStackIsTheModel: where nothing is lost on the way, loss and gradients are those of
// the Llama that has the experts in one layer.
func TestStackIsTheModel(t *testing.T) {
	m, tokens, targets := tinyModel(t)
	want, err := m.Loss(t.Context(), tokens, targets, 3, 8)
	require.NoError(t, err)
	require.NoError(t, m.Backward(t.Context()))
	for _, ranks := range []int{1, 4, 5} {
		s, err := newStack(m, ranks, exactly.use)
		require.NoError(t, err)
		s.use(exactly.wires())
		got, err := s.forward(t.Context(), tokens, targets, 3, 8)
		require.NoError(t, err)
		require.InDelta(t, want, got, 1e-6)
		require.NoError(t, s.backward(t.Context()))
		require.Len(t, s.params(), len(m.Params()))
		for _, p := range s.params() {
			wanted := m.Param(p.Name).Grad
			if !slices.ContainsFunc(wanted, func(v float32) bool { return v != 0 }) {
				require.Equal(t, wanted, p.Grad, "%s has no tokens", p.Name)
				continue
			}
			require.Less(t, apart([][]float32{p.Grad}, [][]float32{wanted}), 1e-5, p.Name)
		}
	}
}

// TestRoutedRounds: results that come back in BF16 are rounded before they are weighted and
// added, and so is what is sent there.
func TestRoutedRounds(t *testing.T) {
	m, _, _ := tinyModel(t)
	c := m.Config()
	s, err := newStack(m, 2, exactly.use)
	require.NoError(t, err)
	experts := s.layers[0].experts
	x := make([]float32, 6*c.Dim)
	for i := range x {
		x[i] = float32(i%13)/7 - 0.8
	}
	rounded := func(x []float32) []float32 {
		y := make([]float32, len(x))
		for i, v := range x {
			y[i] = fp8.BFloat16FromFloat32(v).Float32()
		}
		return y
	}
	for _, way := range []routeKind{{dispatch: "bf16", combine: "fp32"}, {dispatch: "fp32", combine: "bf16"}} {
		experts.wires = way.wires()
		got := make([]float32, len(x))
		require.NoError(t, experts.forward(t.Context(), got, x, 1, 6))
		want := make([]float32, len(x))
		for token := range 6 {
			in, row := x[token*c.Dim:(token+1)*c.Dim], want[token*c.Dim:(token+1)*c.Dim]
			if way.dispatch == "bf16" {
				in = rounded(in)
			}
			for k := range routedTopK {
				i, out := token*routedTopK+k, make([]float32, c.Dim)
				require.NoError(t, experts.mlps[experts.chosen[i]].Forward(t.Context(), out, in, 1))
				if way.combine == "bf16" {
					out = rounded(out)
				}
				for j, v := range out {
					row[j] += float32(experts.weights[i] * v)
				}
			}
		}
		require.Equal(t, want, got, "%v", way)
	}
}

func TestApart(t *testing.T) {
	require.InDelta(t, 0.5, apart([][]float32{{3, 4}, {0}}, [][]float32{{3, 4}, {0}})+apart([][]float32{{3}, {6.5}}, [][]float32{{3}, {4}}), 1e-12)
}
