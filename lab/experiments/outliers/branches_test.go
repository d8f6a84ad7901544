package outliers

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/safetensors"
)

// tinyLlama returns a model of two layers with larger weights than those of a first
// step, and a batch for it.
func tinyLlama(t *testing.T) (m *nn.Llama, tokens []int32, batch, seq int) {
	m, err := nn.NewLlama(nn.Config{Vocab: 16, Dim: 8, Layers: 2, Heads: 2, Hidden: 24, Context: 6}, 1)
	require.NoError(t, err)
	for n, p := range m.Params() {
		for i := range p.Value {
			if p.Rows > 1 {
				p.Value[i] *= 15
			} else {
				p.Value[i] = 1 + float32(i*n%7)/8 // gains that tell norms apart
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2 * 6 {
		tokens = append(tokens, random.Int32N(16))
	}
	return m, tokens, 2, 6
}

// layerByHand is a layer whose attention adds nothing, in float64: it returns gate and
// up, and what it makes of the residual stream x.
func layerByHand(m *nn.Llama, layer int, x []float64) (gate, up, out []float64) {
	norm := m.Param([]string{"model.layers.0", "model.layers.1"}[layer] + ".post_attention_layernorm.weight").Value
	var squares float64
	for _, v := range x {
		squares += v * v
	}
	r := math.Sqrt(squares/float64(len(x)) + 1e-5)
	w := mlpOf(m, layer)
	out = append(out, x...)
	for n := range w.up.Rows {
		var g, u float64
		for i, v := range x {
			g += v / r * float64(norm[i]) * float64(w.gate.Value[n*len(x)+i])
			u += v / r * float64(norm[i]) * float64(w.up.Value[n*len(x)+i])
		}
		gate, up = append(gate, g), append(up, u)
		for i := range out {
			out[i] += u * g / (1 + math.Exp(-g)) * float64(w.down.Value[i*w.up.Rows+n])
		}
	}
	return gate, up, out
}

func TestBranchesByHand(t *testing.T) {
	m, tokens, batch, seq := tinyLlama(t)
	for _, name := range []string{"model.layers.0.self_attn.o_proj.weight", "model.layers.1.self_attn.o_proj.weight"} {
		clear(m.Param(name).Value)
	}
	layers, err := branchesOf(t.Context(), m, tokens, batch, seq)
	require.NoError(t, err)
	require.Len(t, layers, 2)
	for i, token := range tokens {
		var x []float64
		for _, v := range rowOf(m.Param("model.embed_tokens.weight"), int(token)) {
			x = append(x, float64(v))
		}
		for layer, b := range layers {
			gate, up, out := layerByHand(m, layer, x)
			row := b.rows(i, i+1)
			require.InDeltaSlice(t, gate, row.gate, 1e-4)
			require.InDeltaSlice(t, up, row.up, 1e-4)
			x = out
		}
	}
}

func TestFilesOfActivations(t *testing.T) {
	write := func(tensors ...safetensors.Tensor) *safetensors.File {
		path := t.TempDir() + "/a"
		require.NoError(t, safetensors.WriteFile(path, tensors, nil))
		f, err := safetensors.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	tensor := func(name string, shape ...int) safetensors.Tensor {
		n := 4
		for _, d := range shape {
			n *= d
		}
		return safetensors.Tensor{Info: safetensors.Info{Name: name, DType: safetensors.F32, Shape: shape}, Data: make([]byte, n)}
	}
	_, err := branchesIn(write(tensor("x", 2, 2)))
	require.EqualError(t, err, "the activations have no layers.0.gate: --activations wants layers.N.gate and layers.N.up")
	_, err = branchesIn(write(tensor("layers.0.gate", 2, 3), tensor("layers.0.up", 2, 2)))
	require.EqualError(t, err, "layers.0.gate is [2 3] and layers.0.up is [2 2]: they must both be [tokens, channels], with two tokens at least")
	for _, shape := range [][]int{{2}, {1, 2}, {2, 0}} {
		_, err = branchesIn(write(tensor("layers.0.gate", shape...), tensor("layers.0.up", shape...)))
		require.ErrorContains(t, err, "with two tokens at least")
	}
	bad := tensor("layers.0.up", 2, 2)
	bad.Data[11], bad.Data[10] = 0x7f, 0xc0
	_, err = branchesIn(write(tensor("layers.0.gate", 2, 2), bad))
	require.EqualError(t, err, "layers.0.up: element 2 is NaN: activations must be finite")
	bad.Data[10] = 0x80
	_, err = branchesIn(write(tensor("layers.0.gate", 2, 2), bad))
	require.EqualError(t, err, "layers.0.up: element 2 is +Inf: activations must be finite")
	layers, err := branchesIn(write(tensor("layers.0.gate", 2, 2), tensor("layers.0.up", 2, 2), tensor("layers.2.gate", 2, 2)))
	require.NoError(t, err)
	require.Len(t, layers, 1)
}
