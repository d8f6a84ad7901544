package train

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/telemetry"
)

// noise is a series about 2 without a spike.
func noise(i int) float64 { return 2 + 0.1*math.Sin(float64(3*i)) }

// lost is an event of 1000 values.
func lost(step int64, tensor string, s fp8.Stats) telemetry.Event {
	s.Elements = 1000
	return telemetry.Event{Step: step, Summary: telemetry.Summary{Tensor: tensor, Op: "forward", Stats: s}}
}

// TestWatchIsASpikeDetector where a rule is the zero Rule.
func TestWatchIsASpikeDetector(t *testing.T) {
	w := Watch{Rules: []Rule{{}}}
	var d SpikeDetector
	for i := range 60 {
		v := noise(i)
		switch i {
		case 5, 30:
			v = 9
		case 40:
			v = math.NaN()
		case 41:
			v = math.Inf(1)
		}
		w.Observe(SeriesLoss, int64(i), v)
		w.Observe(SeriesGradientNorm, int64(i), 1000*v)
		alarms := w.Alarms()
		spike, is := d.Observe(int64(i), v, nil)
		require.Equal(t, is, len(alarms) == 1, i)
		if is && number.IsFinite(v) {
			require.Equal(t, Alarm{First: 30, Step: 30, Value: 9, Median: spike.Median, Score: spike.Score}, alarms[0])
		}
	}
}

// TestWatchStepsInARow: a rule holds after as many steps in a row, and then after as many again.
func TestWatchStepsInARow(t *testing.T) {
	w := Watch{Rules: []Rule{{Series: SeriesGradientNorm, Steps: 3, Action: ActionRewind}}}
	var at [][2]int64
	for i := range int64(60) {
		v := noise(int(i))
		if i == 20 || i == 21 || i >= 30 && i <= 36 {
			v = 50
		}
		w.Observe(SeriesGradientNorm, i, v)
		for _, a := range w.Alarms() {
			at = append(at, [2]int64{a.First, a.Step})
		}
	}
	require.Equal(t, [][2]int64{{30, 32}, {33, 35}}, at)
}

// TestWatchOnceAStep: of several values of one step one counts.
func TestWatchOnceAStep(t *testing.T) {
	w := Watch{Rules: []Rule{{Series: SeriesGradientNorm, Action: ActionRewind}}}
	for i := range int64(30) {
		w.Observe(SeriesGradientNorm, i, noise(int(i)))
	}
	require.Empty(t, w.Alarms())
	for _, step := range []int64{30, 30, 31} {
		w.Observe(SeriesGradientNorm, step, 50)
	}
	var steps []int64
	for _, a := range w.Alarms() {
		steps = append(steps, a.Step)
	}
	require.Equal(t, []int64{30, 31}, steps)
}

// TestWatchOperands: each operand has a past of its own, names and operations select, and
// what is lost as a rule is no alarm.
func TestWatchOperands(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		bad  fp8.Stats
		more bool // a usual loss is needed for there to be none
	}{
		{Rule{Series: SeriesSaturated}, fp8.Stats{SaturatedPos: 60, SaturatedNeg: 40}, true},
		{Rule{Series: SeriesFlushed}, fp8.Stats{Flushed: 100}, true},
		{Rule{Series: SeriesNonFinite, Least: 50}, fp8.Stats{NaN: 1}, false},
		{Rule{Series: SeriesNonFinite}, fp8.Stats{BecameNonFinite: 1}, false},
		{Rule{Series: SeriesAmax}, fp8.Stats{Amax: 13}, false},
		{Rule{Series: SeriesAmax}, fp8.Stats{Amax: 0.7}, false},
		{Rule{Series: SeriesAmax}, fp8.Stats{Amax: math.Inf(1)}, false},
	} {
		w := Watch{Rules: []Rule{c.rule, c.rule, c.rule}}
		w.Rules[1].Tensor, w.Rules[2].Op = "*.other", "input-gradient"
		for i := range int64(30) {
			usual := fp8.Stats{Amax: noise(int(i)), SaturatedPos: 5 + i%3, Flushed: 7 + i%3}
			require.NoError(t, w.Event(lost(i, "a.up", usual)))
			usual.SaturatedPos, usual.Flushed = 300, 300
			require.NoError(t, w.Event(lost(i, "a.down", usual)))
			require.Empty(t, w.Alarms(), "%+v, step %d", c.rule, i)
		}
		bad := c.bad
		if bad.Amax == 0 {
			bad.Amax = 2
		}
		require.NoError(t, w.Event(lost(30, "a.up", bad)))
		alarms := w.Alarms()
		require.Len(t, alarms, 1, "%+v", c.rule)
		require.Equal(t, []any{0, int64(30), "a.up", "forward"},
			[]any{alarms[0].Rule, alarms[0].Step, alarms[0].Tensor, alarms[0].Op})
		require.NoError(t, w.Event(lost(31, "a.other", bad)))
		if c.rule.Series == SeriesNonFinite || math.IsInf(bad.Amax, 1) {
			require.Len(t, w.Alarms(), 2, "of those two rules that hear of it, without a past")
		} else {
			require.Empty(t, w.Alarms(), "without a past")
		}
	}
	w := Watch{Rules: []Rule{{Series: SeriesSaturated, AtLeast: 0.2}}}
	for i := range int64(30) {
		require.NoError(t, w.Event(lost(i, "x", fp8.Stats{})))
	}
	require.NoError(t, w.Event(lost(30, "x", fp8.Stats{SaturatedPos: 199})))
	require.Empty(t, w.Alarms())
	require.NoError(t, w.Event(lost(31, "x", fp8.Stats{SaturatedPos: 200})))
	require.Len(t, w.Alarms(), 1)
}

// TestWatchRanks: the rank that is apart is named, and none is where all are alike.
func TestWatchRanks(t *testing.T) {
	w := Watch{Rules: []Rule{{Series: SeriesRanks, Steps: 2, Action: ActionStop}}}
	ranks := func(step int64, apart float64) []Alarm {
		values := []float64{2.01, 1.99, 2, apart, 2.02, 1.98, 2}
		w.ObserveRanks("x.input", step, values)
		return w.Alarms()
	}
	require.Empty(t, ranks(0, 2.03))
	require.Empty(t, ranks(1, 3))
	require.Empty(t, ranks(2, 2.03))
	require.Empty(t, ranks(3, 1))
	alarms := ranks(4, math.NaN())
	require.Len(t, alarms, 1)
	require.Equal(t, 3, alarms[0].Rank)
	require.Equal(t, "x.input", alarms[0].Tensor)
	require.Equal(t, []int64{3, 4}, []int64{alarms[0].First, alarms[0].Step})
	require.Equal(t, 2.0, alarms[0].Median)
	w.ObserveRanks("two", 5, []float64{1, 2})
	w.ObserveRanks("two", 6, []float64{1, 2})
	require.Empty(t, w.Alarms(), "of two nobody knows which is right")
	w.ObserveRanks("none", 7, nil)
}

func TestRuleCheck(t *testing.T) {
	require.NoError(t, Rule{}.Check())
	for _, c := range []struct {
		rule Rule
		says string
	}{
		{Rule{Series: 9}, "unknown series"},
		{Rule{Action: 9}, "unknown action"},
		{Rule{Series: SeriesAmax, Tensor: "[a"}, "Rule.Tensor"},
		{Rule{Tensor: "x"}, "loss is of no operand"},
		{Rule{Steps: -1}, "Rule.Steps is -1"},
		{Rule{Threshold: math.NaN()}, "Rule.Threshold is NaN"},
		{Rule{AtLeast: math.Inf(1)}, "Rule.AtLeast is +Inf"},
		{Rule{Series: SeriesRanks, Action: ActionWiden}, "no operand to widen"},
	} {
		err := c.rule.Check()
		require.ErrorIs(t, err, ErrInput)
		require.ErrorContains(t, err, c.says)
	}
	for s := range Series(7) {
		var read Series
		text, err := s.MarshalText()
		require.NoError(t, err)
		require.NoError(t, read.UnmarshalText(text))
		require.Equal(t, s, read)
	}
}

// TestRewinder: a run that goes back and does the steps again has the bits of one that never
// did other ones, whatever the model and the optimizer remember.
func TestRewinder(t *testing.T) {
	f := nn.ProfileFP8(scaling.TEDelayed, fp8.E4M3)
	f.Stochastic = true
	cfg := withFP8(small(), f)
	m, err := nn.NewLlama(cfg, 5)
	require.NoError(t, err)
	o := optim.AdamW{Clip: 1, Moments: optim.Moments{Format: optim.MomentsFP8}}
	r := Rewinder{Every: 3}
	_, err = r.Back(t.Context(), 0, m, &o)
	require.ErrorIs(t, err, ErrInput)
	var want []float32
	for step := range int64(8) {
		require.NoError(t, r.Keep(step, m, &o))
		want = append(want, resume(t, m, &o, int(step), 1)...)
	}
	for _, c := range []struct{ to, from int64 }{{7, 6}, {6, 6}, {5, 3}, {0, 3}} {
		from, err := r.Back(t.Context(), c.to, m, &o)
		require.NoError(t, err)
		require.Equal(t, c.from, from, "before step %d", c.to)
		require.Equal(t, c.from, o.Steps())
		require.Equal(t, want[from:], resume(t, m, &o, int(from), int(8-from)))
	}
	other, err := nn.NewLlama(small(), 5)
	require.NoError(t, err)
	_, err = r.Back(t.Context(), 7, other, &o)
	require.ErrorIs(t, err, ErrMismatch)
	r.Forget()
	_, err = r.Back(t.Context(), 7, m, &o)
	require.ErrorIs(t, err, ErrInput)
}
