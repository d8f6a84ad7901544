package optim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/telemetry"
)

func TestSkipWithoutRecorder(t *testing.T) {
	a, b := zeros("a", 1, 3), zeros("b", 1, 3)
	b.Grad[1], b.Grad[2] = float32(math.Inf(-1)), float32(math.NaN())
	var o AdamW
	_, skip, err := o.StepOrSkip(t.Context(), []*nn.Param{a, b}, 1, nil)
	require.NoError(t, err)
	want := telemetry.NonFinite{Tensor: "b", Op: "gradient", Index: 1, Value: math.Inf(-1)}
	require.Equal(t, want, skip.Gradient)
	require.Equal(t, want, skip.First)
	require.Zero(t, o.Steps())
	require.Zero(t, o.MomentBytes())

	var recorder telemetry.Recorder
	_, _, err = o.StepOrSkip(t.Context(), []*nn.Param{a, b}, 1, &recorder)
	require.NoError(t, err)
	first, ok := recorder.FirstNonFinite()
	require.True(t, ok)
	require.Equal(t, want, first, "the recorder is told")
	_, _, err = o.StepOrSkip(t.Context(), []*nn.Param{a, b}, math.NaN(), nil)
	require.ErrorContains(t, err, "learning rate is NaN")
	b.Grad[1], b.Grad[2] = 1e30, 0
	_, _, err = o.StepOrSkip(t.Context(), []*nn.Param{a, b}, 1, nil)
	require.ErrorContains(t, err, "set AdamW.Clip")
}
