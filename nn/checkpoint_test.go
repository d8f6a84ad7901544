package nn

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// checkpointTolerance is the largest error of an activation, as a fraction of
// the root mean square of its tensor. The reference adds in another order.
const checkpointTolerance = 1e-4

// TestCheckpoint runs stories260K, a trained Llama of 260 thousand parameters,
// and compares with activations recorded from another implementation.
func TestCheckpoint(t *testing.T) {
	weights := openShared(t, "stories260K.safetensors")
	recorded := openShared(t, "stories260K_activations.safetensors")
	m, err := NewLlama(Config{
		Vocab: 512, Dim: 64, Layers: 5, Heads: 8, KVHeads: 4, Hidden: 172, Context: 512, TieHead: true,
	}, 0)
	require.NoError(t, err)
	require.Len(t, weights.Tensors(), len(m.Params()))
	for _, p := range m.Params() {
		values, err := weights.Float32s(p.Name)
		require.NoError(t, err)
		require.Len(t, values, p.Rows*p.Cols, p.Name)
		copy(p.Value, values)
	}

	seen := map[string][]float32{}
	m.Shared().Tap = func(name string, values []float32, rows, cols int) {
		require.Len(t, values, rows*cols, name)
		require.NotContains(t, seen, name, "once")
		seen[name] = slices.Clone(values)
	}
	tokens := recordedTokens(t, recorded)
	logits, err := m.Logits(t.Context(), tokens, 1, len(tokens))
	require.NoError(t, err)
	requireRecorded(t, recorded, "logits", logits)
	requireRecorded(t, recorded, "logits", seen["lm_head.output"])
	for i := range m.Blocks() {
		layer, tapped := fmt.Sprintf("layers.%d.", i), fmt.Sprintf("model.layers.%d.", i)
		for name, tap := range map[string]string{
			"attn_in": "self_attn.q_proj.input", "attn_out": "self_attn.mixed", "mlp_in": "mlp.up_proj.input",
			"gate": "mlp.swiglu.gate", "up": "mlp.swiglu.up", "swiglu": "mlp.swiglu.product",
		} {
			requireRecorded(t, recorded, layer+name, seen[tapped+tap])
		}
	}
}

// openShared opens a file of the shared data, which is not part of the module.
func openShared(t *testing.T, name string) *safetensors.File {
	t.Helper()
	f, err := safetensors.Open(testutil.Shared(t, "data", name))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func recordedTokens(t *testing.T, f *safetensors.File) []int32 {
	t.Helper()
	data, err := f.Bytes("tokens")
	require.NoError(t, err)
	tokens := make([]int32, len(data)/4)
	for i := range tokens {
		tokens[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return tokens
}

func requireRecorded(t *testing.T, f *safetensors.File, name string, got []float32) {
	t.Helper()
	want, err := f.Float32s(name)
	require.NoError(t, err)
	require.Len(t, got, len(want), name)
	var squares, largest float64
	for i, w := range want {
		squares += float64(w) * float64(w)
		largest = max(largest, math.Abs(float64(got[i])-float64(w)))
	}
	require.Less(t, largest/math.Sqrt(squares/float64(len(want))), checkpointTolerance, name)
}
