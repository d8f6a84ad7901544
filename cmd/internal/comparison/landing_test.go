package comparison

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/train"
)

const poisoned = "model.layers.1.mlp.up_proj.weight"

// lands returns a runner that is to land.
func lands(t *testing.T, steps int) *runner {
	o := everything(steps)
	o.Land = true
	return newTestRunner(t, o)
}

// landsAt does a step that ends the run, and returns what is left.
func (r *runner) landsAt(t *testing.T, step int) *Landing {
	p, err := r.step(t.Context(), step)
	require.NoError(t, err)
	r.result.Points = append(r.result.Points, p)
	before := r.values()
	require.ErrorContains(t, r.landIfBad(t.Context(), p), "is not finite: the run stopped")
	require.Equal(t, fmt.Sprint(before), fmt.Sprint(r.values()), "nothing was moved") // a NaN is not itself
	require.NotNil(t, r.result.Landing)
	return r.result.Landing
}

// goes does steps, each of which is well.
func (r *runner) goes(t *testing.T, from, to int) {
	for n := from; n < to; n++ {
		p, err := r.step(t.Context(), n)
		require.NoError(t, err)
		r.result.Points = append(r.result.Points, p)
		require.NoError(t, r.landIfBad(t.Context(), p))
	}
}

// TestLandsOnNaN: a weight that is NaN is found in the product that it is first in.
func TestLandsOnNaN(t *testing.T) {
	r := lands(t, 20)
	r.goes(t, 0, 10)
	r.fp8.Model.Param(poisoned).Value[16+3] = float32(math.NaN()) // before a copy is taken
	l := r.landsAt(t, 10)
	require.Equal(t, "step 10: the loss of FP8 is not finite", l.Cause)
	require.Equal(t, poisoned, l.Recorder.First.Tensor)
	require.Equal(t, 19, l.Recorder.First.Index)
	require.Equal(t, "model.layers.1.mlp.up_proj.output", l.Recorder.Operator.Name)
	f := l.Recorder.Operator.Explain()
	require.Equal(t, []any{"operand", 1, 3}, []any{f.Of, f.Row, f.Col})
	require.NotEmpty(t, l.Events)
	for _, e := range l.Events {
		require.Greater(t, e.Step, int64(0))
	}
	lines := r.result.Timeline()
	require.Equal(t, 10, lines[len(lines)-1].Step)
	require.Contains(t, lines[len(lines)-1].What, "The run stopped: step 10")
}

// TestLandsOnDamage: what was not computed is said to be that.
func TestLandsOnDamage(t *testing.T) {
	r := lands(t, 20)
	r.goes(t, 0, 5)
	r.fp8.Model.Param(poisoned).Value[16+3] = float32(math.NaN())
	p, err := r.step(t.Context(), 5)
	require.NoError(t, err)
	r.result.Points = append(r.result.Points, p)
	require.ErrorContains(t, r.landIfBad(t.Context(), p), "is not finite: the run stopped")
	require.Contains(t, r.result.Landing.Cause, "not NaN: what went wrong was not computed, such as a flipped bit in memory")
	require.Nil(t, r.result.Landing.Recorder.First)
}

// TestLandsByRule: the product of the rule's operand is kept, and neither that nor a landing
// that does not come changes the run.
func TestLandsByRule(t *testing.T) {
	o := everything(12)
	o.Rules = []train.Rule{{
		Series: train.SeriesFlushed, Tensor: "*.mlp.down_proj.weight", Op: "forward", Least: 3, Threshold: 1e-9,
		AtLeast: 1e-9, Action: train.ActionStop,
	}}
	plain, want := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
	require.ErrorContains(t, want, "rule 1 stopped the run: step ")
	o.Land = true
	r, err := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
	require.EqualError(t, err, want.Error())
	require.Nil(t, plain.Landing)
	require.Equal(t, plain.Points, r.Points)
	l := r.Landing
	require.NotNil(t, l)
	require.Equal(t, r.Alarms[0].Tensor, l.Recorder.Operator.B.Tensor.Name)
	require.Equal(t, "forward", l.Recorder.Operator.Op)
	checks, err := l.Recorder.Operator.Replay(t.Context(), 1)
	require.NoError(t, err)
	for _, c := range checks {
		require.True(t, c.Same(), "%+v", c)
	}
	o.Rules = nil
	without := everything(12)
	a, err := Run(t.Context(), without, rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)
	b, err := Run(t.Context(), o, rhyme(), Checkpoints{}, quiet)
	require.NoError(t, err)
	require.Equal(t, a.Points, b.Points)
	require.Nil(t, b.Landing)
}

// TestLandsWhenAsked: a run that is stopped keeps the product that lost the most, and its model
// is that of one that is stopped without.
func TestLandsWhenAsked(t *testing.T) {
	stopped := func(land bool) *Result {
		o := everything(12)
		o.Land = land
		return interrupt(t, o, Checkpoints{}, 4)
	}
	plain, landed := stopped(false), stopped(true)
	require.Equal(t, 3, landed.Landing.Step)
	require.NotNil(t, landed.Landing.Recorder.Operator)
	require.Equal(t, plain.Points, landed.Points)
	for i, p := range plain.ModelFP8.Params() {
		require.Equal(t, p.Value, landed.ModelFP8.Params()[i].Value, p.Name)
	}
}

// TestLandsAfterRewinding: a step that was gone back over is done again as it was, and the
// model is then the one that it was gone back to.
func TestLandsAfterRewinding(t *testing.T) {
	o := everything(30)
	o.Land, o.Rules = true, []train.Rule{{Series: train.SeriesGradientNorm, Least: 3, Threshold: 1e-9, Steps: 2,
		Action: train.ActionRewind}}
	r := newTestRunner(t, o)
	step := 0
	for ; len(r.result.Alarms) < 2; step++ {
		require.Less(t, step, 25, "too few values are above the median: %v", r.result.Alarms)
		r.goes(t, step, step+1)
	}
	before := r.values()
	require.NoError(t, r.land(t.Context(), step-1, "why", train.Alarm{}))
	require.Equal(t, "why", r.result.Landing.Cause, "the loss is the same")
	require.Equal(t, before, r.values())
}
