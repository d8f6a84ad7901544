package main

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestLogits compares with a float32 forward pass of a trained model.
func TestLogits(t *testing.T) {
	m, err := open(t.Context(), testutil.Shared(t, "data/stories260K.safetensors"))
	require.NoError(t, err)
	f, err := safetensors.Open(testutil.Shared(t, "data/stories260K_activations.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	tokens, err := safetensors.Elements[int32](f, "tokens")
	require.NoError(t, err)
	want, err := f.Float32s("logits")
	require.NoError(t, err)

	s := newSequence(m)
	var difference, norm float64
	same := 0
	for i, token := range tokens {
		require.NoError(t, s.step(t.Context(), int(token), i))
		logits := want[i*m.vocab:][:m.vocab]
		for j, w := range logits {
			difference += math.Pow(float64(s.logits[j]-w), 2)
			norm += float64(w * w)
		}
		if largest(s.logits) == largest(logits) {
			same++
		}
	}
	require.Less(t, math.Sqrt(difference/norm), 0.05)
	require.Greater(t, same, len(tokens)*9/10)
}

// TestUntiedHead: a file that has a head of its own is not served with the embedding.
func TestUntiedHead(t *testing.T) {
	c := config{vocab: 32, dim: 16, hidden: 24, layers: 1, heads: 2, kvHeads: 1, theta: 10000}
	var tensors []safetensors.Tensor
	add := func(name string, values []float32, shape ...int) {
		data := make([]byte, 0, 4*len(values))
		for _, v := range values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		tensors = append(tensors, safetensors.Tensor{Info: safetensors.Info{Name: name, DType: safetensors.F32, Shape: shape}, Data: data})
	}
	parameters := random(1)
	var head []float32
	_, err := load(t.Context(), c, func(name string, shape ...int) ([]float32, error) {
		values, err := parameters(name, shape...)
		add(name, values, shape...)
		if name == "model.embed_tokens.weight" {
			for _, v := range values {
				head = append(head, -v)
			}
		}
		return values, err
	})
	require.NoError(t, err)
	metadata := map[string]string{
		"vocab_size": "32", "hidden_size": "16", "intermediate_size": "24",
		"num_hidden_layers": "1", "num_attention_heads": "2", "num_key_value_heads": "1",
	}
	logits := func() []float32 {
		path := filepath.Join(t.TempDir(), "model")
		require.NoError(t, safetensors.WriteFile(path, tensors, metadata))
		m, err := open(t.Context(), path)
		require.NoError(t, err)
		s := newSequence(m)
		require.NoError(t, s.step(t.Context(), 3, 0))
		return s.logits
	}
	tied := logits()
	add("lm_head.weight", head, c.vocab, c.dim)
	for i, v := range logits() {
		require.Equal(t, -tied[i], v)
	}
}

func Example() {
	main()
	// Output:
	// [1 3 5]: [5 5 5 5 5 5 5 5]
	// [1 10 16]: [2 2 2 2 2 2 2 251]
	// [1 17 27]: [164 175 247 247 247 247 30 30]
	// [1 24 38]: [216 216 141 46 66 66 66 66]
	// [1 31 49]: [63 63 63 63 63 63 63 160]
	// [1 38 60]: [221 251 251 251 251 251 204 204]
	// [1 45 71]: [63 63 63 63 63 63 63 63]
	// [1 52 82]: [105 204 204 204 204 204 204 204]
	// [1 59 93]: [54 114 63 63 63 63 63 52]
	// [1 66 104]: [63 63 63 63 63 63 63 63]
	// [1 73 115]: [164 64 56 48 21 64 234 33]
	// [1 80 126]: [197 63 63 63 63 63 63 63]
	// [1 87 137]: [47 1 1 1 1 1 46 46]
	// [1 94 148]: [5 5 5 5 5 29 29 29]
	// [1 101 159]: [104 83 83 187 46 164 77 179]
	// [1 108 170]: [54 114 63 63 63 63 63 63]
	// 8 goroutines and one gave the same answers to 16 requests
}
