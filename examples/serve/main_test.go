package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestLogits compares with a float32 forward pass of a trained model.
func TestLogits(t *testing.T) {
	m, err := open(testutil.Shared(t, "data/stories260K.safetensors"))
	require.NoError(t, err)
	f, err := safetensors.Open(testutil.Shared(t, "data/stories260K_activations.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	tokens, err := safetensors.Elements[int32](f, "tokens")
	require.NoError(t, err)
	want, err := f.Float32s("logits")
	require.NoError(t, err)

	s := newSession(m)
	var difference, norm float64
	same := 0
	for i, token := range tokens {
		require.NoError(t, s.step(int(token), i))
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
