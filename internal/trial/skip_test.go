package trial

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/telemetry"
)

var tokens = []int32{3, 1, 4, 1, 5, 9, 2, 6}

func newRun(t *testing.T) *Run {
	t.Helper()
	recipes := nn.ProfileFP8(scaling.TEDelayed, fp8.E4M3)
	r, err := New("a run", nn.Config{Vocab: 10, Dim: 8, Layers: 1, Heads: 2, Hidden: 16, Context: 8, FP8: &recipes}, 1)
	require.NoError(t, err)
	return r
}

// TestStepOrSkip: it is Step where gradients are finite.
func TestStepOrSkip(t *testing.T) {
	a, b := newRun(t), newRun(t)
	for range 3 {
		want, err := a.Step(t.Context(), tokens, tokens, 2, 4, 0.01)
		require.NoError(t, err)
		got, skip, err := b.StepOrSkip(t.Context(), tokens, tokens, 2, 4, 0.01, nil)
		require.NoError(t, err)
		require.Nil(t, skip)
		require.Equal(t, want, got)
		require.Positive(t, got.Loss)
		require.Positive(t, got.GradientNorm)
	}
	require.Equal(t, a.Model.Shared().Scaling().State(), b.Model.Shared().Scaling().State())
	require.EqualValues(t, 3, b.Model.Shared().Scaling().State().Histories.Step, "each step ends one of the scales")
	require.Positive(t, a.Time)
	require.Positive(t, b.Time)
}

// TestNonFinite is an error of Step and a step that StepOrSkip does not take.
func TestNonFinite(t *testing.T) {
	r := newRun(t)
	const name = "model.layers.0.mlp.up_proj.weight"
	r.Model.Param(name).Value[3] = float32(math.NaN())
	recorder := telemetry.New()
	r.Model.Listen(recorder)
	f, skip, err := r.StepOrSkip(t.Context(), tokens, tokens, 2, 4, 0.01, recorder)
	require.NoError(t, err)
	require.True(t, math.IsNaN(f.Loss))
	require.True(t, math.IsNaN(f.GradientNorm))
	require.Equal(t, name, skip.First.Tensor)
	require.Equal(t, 3, skip.First.Index)
	require.Zero(t, r.Optimizer.Steps())
	require.Zero(t, r.Model.Shared().Scaling().State().Histories.Step, "the step does not count for scales either")

	_, err = r.Step(t.Context(), tokens, tokens, 2, 4, 0.01)
	require.ErrorContains(t, err, "a run: loss NaN: ")
	_, err = newRun(t).Step(t.Context(), tokens, tokens, 2, 4, math.NaN())
	require.ErrorContains(t, err, "learning rate is NaN")
	_, _, err = newRun(t).StepOrSkip(t.Context(), tokens, tokens, 2, 4, math.NaN(), nil)
	require.ErrorContains(t, err, "a run: loss 2.")
	require.ErrorContains(t, err, "learning rate is NaN")
	_, _, err = newRun(t).StepOrSkip(t.Context(), tokens, tokens, 3, 4, 0.01, nil)
	require.Error(t, err)
}
