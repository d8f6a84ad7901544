package hf_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/hf"
	"github.com/octavo-fp8/octavo/progress"
)

// TestCalibrate compares maxima with those of the activations that another implementation
// recorded, by the tolerance of [TestStories].
func TestCalibrate(t *testing.T) {
	f, tokens := recorded(t)
	m := load(t, testutil.Shared(t, "data", "stories260K.safetensors"))
	amax, err := hf.Calibrate(t.Context(), m, [][]int32{tokens}, hf.CalibrationOptions{})
	require.NoError(t, err)
	require.Len(t, amax, 5*7+1)
	for i := range 5 {
		layer := func(name string) string { return "layers." + string(rune('0'+i)) + "." + name }
		for module, activation := range map[string]string{
			"self_attn.q_proj": "attn_in", "self_attn.k_proj": "attn_in",
			"self_attn.v_proj": "attn_in", "self_attn.o_proj": "attn_out",
			"mlp.gate_proj": "mlp_in", "mlp.up_proj": "mlp_in", "mlp.down_proj": "swiglu",
		} {
			values, err := f.Float32s(layer(activation))
			require.NoError(t, err)
			most := max(slices.Max(values), -slices.Min(values))
			require.InEpsilon(t, most, amax["model."+layer(module)], 160*0x1p-24, module)
		}
	}
}

// TestCalibrateSequences checks that maxima are those of all sequences, wherever tokens are
// cut, as long as each sees the same tokens before it.
func TestCalibrateSequences(t *testing.T) {
	_, tokens := recorded(t)
	m := load(t, testutil.Shared(t, "data", "stories260K.safetensors"))
	tapped := 0
	m.Shared().Tap = func(string, []float32, int, int) { tapped++ }
	of := func(sequences ...[]int32) map[string]float32 {
		done := int64(0)
		amax, err := hf.Calibrate(t.Context(), m, sequences, hf.CalibrationOptions{
			Cache:    true,
			Progress: progress.Func(func(_ string, n, total int64) { done = n - total }),
		})
		require.NoError(t, err)
		require.Zero(t, done)
		return amax
	}
	first, second := of(tokens[:50]), of(tokens[50:])
	want := map[string]float32{}
	for name := range first {
		want[name] = max(first[name], second[name])
	}
	require.Equal(t, want, of(tokens[:50], nil, tokens[50:]))
	require.NotEqual(t, first, want)
	require.NotEqual(t, second, want)
	require.Len(t, want, 5*9+1)
	require.Positive(t, tapped)
	m.Shared().Tap("it is the one that was there", nil, 0, 0)
}

// TestCalibrateCache checks keys and values by what they are: a value is a row of v_proj
// times the input, and a key at position 0 is not rotated.
func TestCalibrateCache(t *testing.T) {
	m := load(t, testutil.Shared(t, "data", "stories260K.safetensors"))
	most := map[string]float32{}
	m.Shared().Tap = func(name string, values []float32, rows, cols int) {
		most[name] = max(slices.Max(values), -slices.Min(values))
	}
	amax, err := hf.Calibrate(t.Context(), m, [][]int32{{7}}, hf.CalibrationOptions{Cache: true})
	require.NoError(t, err)
	const attention = "model.layers.3.self_attn."
	require.Equal(t, most[attention+"k_proj.output"], amax[attention+"k_scale"])
	require.Equal(t, most[attention+"v_proj.output"], amax[attention+"v_scale"])
}

func TestCalibrateRefuses(t *testing.T) {
	m := load(t, testutil.Shared(t, "data", "stories260K.safetensors"))
	ctx, cancel := context.WithCancel(t.Context())
	_, err := hf.Calibrate(ctx, m, nil, hf.CalibrationOptions{})
	require.ErrorIs(t, err, nn.ErrInput)
	_, err = hf.Calibrate(ctx, m, [][]int32{{512}}, hf.CalibrationOptions{})
	require.ErrorIs(t, err, nn.ErrInput)
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		m.Param("model.layers.2.input_layernorm.weight").Value[9] = float32(bad)
		_, err = hf.Calibrate(ctx, m, [][]int32{{1}, {1, 2}}, hf.CalibrationOptions{})
		require.ErrorIs(t, err, hf.ErrNotFinite)
		require.ErrorContains(t, err, "model.layers.2.self_attn.q_proj.input is ")
		require.ErrorContains(t, err, " in sequence 0, at token 0 and channel 9")
	}
	require.Nil(t, m.Shared().Tap)
	cancel()
	_, err = hf.Calibrate(ctx, m, [][]int32{{1}}, hf.CalibrationOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

// TestCalibratedLayout converts a model with the scales of its inputs, as the golden one is.
func TestCalibratedLayout(t *testing.T) {
	c := open(t, testutil.Shared(t, "golden", "checkpoints", "llama-bf16"))
	m, err := hf.Load(t.Context(), c, hf.Options{})
	require.NoError(t, err)
	tokens := make([]int32, 100)
	for i := range tokens {
		tokens[i] = int32(i * i % m.Config().Vocab)
	}
	amax, err := hf.Calibrate(t.Context(), m, [][]int32{tokens}, hf.CalibrationOptions{Cache: true})
	require.NoError(t, err)

	// The golden maxima are drawn at random: inputs of q and k are one, and theirs are not.
	// What can be compared is that there are the same ones, but for the head's.
	var golden map[string]float32
	path := testutil.Shared(t, "golden", "checkpoints", "llama-fp8-static", "calibration.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &golden))
	for name := range amax {
		if name != "lm_head" {
			require.Contains(t, golden, name)
		}
	}
	require.Len(t, amax, len(golden)+1)

	layout, err := checkpoint.ParseLayout("fp8")
	require.NoError(t, err)
	plan, err := checkpoint.NewPlan(c, layout, checkpoint.PlanOptions{Amax: amax})
	require.NoError(t, err)
	dir := t.TempDir()
	_, err = checkpoint.Convert(t.Context(), plan, dir, checkpoint.Options{})
	require.NoError(t, err)
	scale, ok, err := open(t, dir).Weight("model.layers.1.mlp.down_proj.weight").InputScale()
	require.NoError(t, err)
	require.True(t, ok)
	require.InEpsilon(t, amax["model.layers.1.mlp.down_proj"]/448, scale, 1e-6)
	_, err = hf.Load(t.Context(), open(t, dir), hf.Options{})
	require.NoError(t, err)
}
