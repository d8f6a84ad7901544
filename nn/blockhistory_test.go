package nn

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestDelayedWeightBlocks trains a layer whose weight has a delayed scale for each
// block of 128x128, beside inputs scaled just in time: its results are those of a
// weight quantized under scales that follow, block by block, from the largest
// magnitudes of the last three steps, also after saving and restoring.
func TestDelayedWeightBlocks(t *testing.T) {
	const out, in, rows = 200, 300, 5
	recipes := DefaultFP8()
	weight := scaling.Recipe{Profile: scaling.TEDelayed, Block: tensor.Block{Rows: 128, Cols: 128}, Delayed: scaling.Delayed{Length: 3, Margin: 1}}
	recipes.Forward.B, recipes.InputGradient.B = weight, weight
	shared := new(Shared)
	l, err := NewLinear("up.weight", out, in, Options{FP8: &recipes, Shared: shared})
	require.NoError(t, err)

	var past [][]float32 // amaxes of the blocks, step by step
	scales := []float32{1, 1, 1, 1, 1, 1}
	for step := range 7 {
		for i := range l.Weight.Value {
			l.Weight.Value[i] = float32(math.Sin(float64(i*(step+1)))) * float32(1+i%in/128+step%3)
		}
		x, dy := make([]float32, rows*in), make([]float32, rows*out)
		for i := range x {
			x[i] = float32(math.Cos(float64(i + step)))
		}
		for i := range dy {
			dy[i] = float32(math.Cos(float64(3*i + step)))
		}
		if step == 4 { // go on with another layer
			saved, err := json.Marshal(shared.Scaling().State())
			require.NoError(t, err)
			var state ScalingState
			require.NoError(t, json.Unmarshal(saved, &state))
			before := l.Weight.Value
			shared = new(Shared)
			l, err = NewLinear("up.weight", out, in, Options{FP8: &recipes, Shared: shared})
			require.NoError(t, err)
			require.NoError(t, shared.Scaling().Restore(state))
			copy(l.Weight.Value, before)
		}
		y, dx := make([]float32, rows*out), make([]float32, rows*in)
		require.NoError(t, l.Forward(t.Context(), y, x, rows))
		require.NoError(t, l.Backward(t.Context(), dx, dy))

		w := &tensor.Tensor{Shape: []int{out, in}, Block: weight.Block}
		amax := make([]float32, 6)
		require.NoError(t, tensor.Quantize(t.Context(), w, l.Weight.Value, tensor.Quantizer{Scale: func(block int, a float32, _ bool) fp8.Scale {
			amax[block] = a
			return fp8.Scale{Stored: 1 / scales[block], Multiplier: scales[block]}
		}, Options: tensor.Options{Workers: 1}}))
		a, g := &tensor.Tensor{Shape: []int{rows, in}}, &tensor.Tensor{Shape: []int{rows, out}}
		require.NoError(t, scaling.Quantize(t.Context(), a, x, scaling.Quantizer{Recipe: recipes.Forward.A}))
		require.NoError(t, scaling.Quantize(t.Context(), g, dy, scaling.Quantizer{Recipe: recipes.InputGradient.A}))
		wantY, wantDX := make([]float32, rows*out), make([]float32, rows*in)
		require.NoError(t, gemm.Multiply(t.Context(), wantY, a, w, gemm.Options{}))
		require.NoError(t, gemm.Multiply(t.Context(), wantDX, g, w.Transpose(), gemm.Options{}))
		require.Equal(t, wantY, y, "step %d", step)
		require.Equal(t, wantDX, dx, "step %d", step)

		past = append(past, amax)
		for block := range scales {
			largest := float32(0)
			for _, amaxes := range past[max(len(past)-3, 0):] {
				largest = max(largest, amaxes[block])
			}
			scales[block] = 448 / 2 / largest
		}
		shared.Scaling().EndStep()
	}
	for name, h := range shared.Scaling().State().Histories.Histories {
		require.Len(t, h.Blocks, 6, name)
		require.NotEqual(t, h.Blocks[0].Scale, h.Blocks[5].Scale, name)
	}
}
