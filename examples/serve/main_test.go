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

func Example() {
	main()
	// Output:
	// [1 3 5]: [179 151 144 197 197 197 197 197 175 66 5 5 5 5 244 5]
	// [1 10 16]: [197 197 197 127 63 63 63 63 63 63 63 63 63 63 63 95]
	// [1 17 27]: [131 166 90 155 102 152 234 237 188 147 231 56 56 56 147 201]
	// [1 24 38]: [18 18 18 18 18 18 18 18 18 193 235 235 235 80 80 80]
	// [1 31 49]: [127 127 127 127 127 127 127 127 105 105 105 105 105 105 105 105]
	// [1 38 60]: [57 238 11 221 147 147 18 11 51 44 138 83 221 55 240 138]
	// [1 45 71]: [18 18 18 18 18 18 18 3 3 3 3 3 3 3 3 3]
	// [1 52 82]: [11 20 0 238 11 156 156 204 204 114 114 114 114 114 114 114]
	// [1 59 93]: [179 179 84 237 237 237 237 237 237 237 237 237 237 237 237 237]
	// [1 66 104]: [216 114 240 43 179 30 30 30 30 30 240 178 175 145 127 30]
	// [1 73 115]: [25 197 85 57 57 57 57 57 193 193 193 193 193 193 151 151]
	// [1 80 126]: [57 238 179 179 179 179 179 55 55 55 55 55 55 55 55 55]
	// [1 87 137]: [194 127 229 199 127 128 127 127 127 127 127 127 127 127 127 127]
	// [1 94 148]: [179 179 179 179 179 179 179 179 43 43 43 43 43 43 43 120]
	// [1 101 159]: [179 179 179 179 179 179 179 179 179 43 43 43 43 194 43 179]
	// [1 108 170]: [216 57 84 227 238 84 154 147 57 230 237 57 57 197 197 197]
	// 8 goroutines and one gave the same answers to 16 requests
}
