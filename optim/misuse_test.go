package optim

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/nn"
)

// TestMisuse: arguments that make no sense are errors that can be told apart, and none
// a panic; values stay what they are.
func TestMisuse(t *testing.T) {
	p := zeros("p", 2, 3)
	good := []*nn.Param{p}
	for name, c := range map[string]struct {
		o      *AdamW
		params []*nn.Param
		lr     float64
		want   error
	}{
		"workers":         {&AdamW{Workers: -1}, good, 1, ErrOption},
		"rate":            {&AdamW{}, good, -1, ErrOption},
		"rate is NaN":     {&AdamW{}, good, math.NaN(), ErrOption},
		"decay":           {&AdamW{WeightDecay: math.Inf(1)}, good, 1, ErrOption},
		"format":          {&AdamW{Moments: Moments{Format: 200}}, good, 1, ErrOption},
		"block":           {&AdamW{Moments: Moments{Format: MomentsFP8, Block: math.MinInt}}, good, 1, ErrOption},
		"nil":             {&AdamW{}, []*nn.Param{p, nil}, 1, ErrParams},
		"no values":       {&AdamW{}, []*nn.Param{{Name: "x", Rows: 1, Cols: 2}}, 1, ErrParams},
		"short gradient":  {&AdamW{}, []*nn.Param{{Rows: 1, Cols: 2, Value: make([]float32, 2), Grad: make([]float32, 1)}}, 1, ErrParams},
		"negative shape":  {&AdamW{}, []*nn.Param{{Rows: -1, Cols: -2, Value: make([]float32, 2), Grad: make([]float32, 2)}}, 1, ErrParams},
		"shape overflows": {&AdamW{}, []*nn.Param{{Rows: math.MaxInt, Cols: math.MaxInt}}, 1, ErrParams},
	} {
		_, err := c.o.Step(t.Context(), c.params, c.lr)
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, 1, strings.Count(err.Error(), "optim: "), err)
		_, _, err = c.o.StepOrSkip(t.Context(), c.params, c.lr, nil)
		require.ErrorIs(t, err, c.want, name)
	}
	var o AdamW
	for _, s := range []State{{}, {Version: 2}, {Version: 1, Steps: -1}, {Version: 1, Steps: 1, Power1: 1}, {Version: 1}} {
		require.ErrorIs(t, o.Restore(s, good, nil), ErrState)
	}
	require.ErrorIs(t, o.Restore(o.State(), []*nn.Param{nil}, nil), ErrParams)
	require.Equal(t, make([]float32, 6), p.Value)
	require.ErrorIs(t, o.Restore(o.State(), good, nil), ErrOption, "nobody fills the moments")
	_, err := o.Step(t.Context(), nil, 1)
	require.NoError(t, err, "no parameters are none")
	for _, s := range []Schedule{{}, {Warmup: -3}, {Peak: 1, Steps: -1, Warmup: -2}, {Peak: 1, Steps: 5}, {Peak: 1, Warmup: 3}} {
		for _, step := range []int{math.MinInt, -1, 0, math.MaxInt} {
			require.False(t, math.IsNaN(s.At(step)), "%+v at %d", s, step)
			if step < 0 {
				require.Equal(t, s.At(0), s.At(step), "%+v at %d", s, step)
			}
		}
	}
}

// TestStateText has no Go field names and no numbers for enumerations.
func TestStateText(t *testing.T) {
	o := AdamW{Clip: 1, Moments: Moments{Format: MomentsFP8Expanded, Stochastic: true, Seed: math.MaxUint64}}
	text, err := json.Marshal(o.State())
	require.NoError(t, err)
	require.JSONEq(t, `{"version":1,"options":{"beta1":0.9,"beta2":0.95,"eps":1e-8,"weight_decay":0,"clip":1,
		"moments":{"format":"fp8-expanded","block":128,"stochastic":true,"seed":"18446744073709551615"}},
		"steps":0,"skipped":0,"power1":0,"power2":0}`, string(text))
	var back State
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, o.State(), back)
}
