package train

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/telemetry"
)

// TestSkip breaks a weight for one step, which nothing else may remember.
func TestSkip(t *testing.T) {
	r := runs()["moments in fp8"]
	model, optimizer := newRun(t, r.Config, r.Moments, 5)
	resume(t, model, optimizer, 0, 2)
	before := bitsOf(model, optimizer)
	recorder := telemetry.New()
	require.NoError(t, recorder.Step(2))
	model.Listen(recorder)

	up := model.Param(someWeight)
	good5, good6 := up.Value[5], up.Value[6]
	up.Value[5], up.Value[6] = float32(math.Inf(1)), float32(math.NaN())
	tokens := []int32{1, 2, 3, 4}
	model.ZeroGrad()
	_, err := model.Loss(t.Context(), tokens, tokens, 1, 4)
	require.NoError(t, err)
	require.NoError(t, model.Backward(t.Context()))
	norm, skip, err := optimizer.StepOrSkip(t.Context(), model.Params(), 1, recorder)
	require.NoError(t, err)
	require.NotNil(t, skip)
	require.True(t, norm != norm && skip.Norm != skip.Norm)
	require.Equal(t, telemetry.NonFinite{Step: 2, Tensor: someWeight, Op: "forward", Index: 5, Value: math.Inf(1)}, skip.First)
	require.Equal(t, "gradient", skip.Gradient.Op)
	bad := model.Param(skip.Gradient.Tensor).Grad[skip.Gradient.Index]
	require.False(t, number.IsFinite(float64(bad)))
	require.EqualValues(t, 1, optimizer.Skipped())

	up.Value[5], up.Value[6] = good5, good6
	model.DropStep()
	state := optimizer.State()
	state.Skipped = 0
	moments, err := optimizer.Tensors(model.Params())
	require.NoError(t, err)
	require.NoError(t, optimizer.Restore(state, model.Params(), func(all []optim.Tensor) error {
		for i, m := range all {
			moments[i].CopyTo(m.Elements, 0, m.Count())
		}
		return nil
	}))
	require.True(t, reflect.DeepEqual(before, bitsOf(model, optimizer)), "as if nothing had been")

	_, err = optimizer.Step(t.Context(), model.Params(), 1)
	require.ErrorContains(t, err, "must be finite", "Step does not skip")
	model.ZeroGrad()
	_, skip, err = optimizer.StepOrSkip(t.Context(), model.Params(), 1, nil)
	require.NoError(t, err)
	require.Nil(t, skip)
	require.EqualValues(t, 3, optimizer.Steps())
}

// noisy is a loss that falls slowly, with noise of deviation 0.05.
func noisy(step int) float64 {
	return 2 + 2/(1+float64(step)/100) + 0.05*float64(random.Normal(1, 2, uint64(step)))
}

func TestSpikes(t *testing.T) {
	var d SpikeDetector
	for step := range 2000 {
		value := noisy(step)
		want := step == 700 || step == 1200
		if want {
			value += 0.5
		}
		spike, is := d.Observe(int64(step), value, nil)
		require.Equal(t, want, is, "step %d: %+v", step, spike)
		if is {
			require.EqualValues(t, step, spike.Step)
			require.Equal(t, value, spike.Value)
			require.Greater(t, spike.Score, 6.0)
			require.Nil(t, spike.Suspect)
		}
	}
	require.Len(t, d.Past, 100)
}

// TestSpikeRule has a past for which the rule can be done by hand: 1 to 9, of median
// 5 and median distance 2.
func TestSpikeRule(t *testing.T) {
	detector := func() *SpikeDetector {
		return &SpikeDetector{Window: 9, Least: 9, Threshold: 3, Past: []float64{9, 2, 7, 4, 5, 6, 3, 8, 1}}
	}
	spread := 2 * 1.4826 // not a constant, of which arithmetic is exact
	for value, want := range map[float64]bool{5 + 3*spread - 1e-9: false, 5 + 3*spread + 1e-9: true, -1e9: false} {
		d := detector()
		_, is := d.Observe(1, value, nil)
		require.Equal(t, want, is, "%v", value)
		require.Equal(t, []float64{2, 7, 4, 5, 6, 3, 8, 1, value}, d.Past)
	}
	d := detector()
	spike, is := d.Observe(7, 100, nil)
	require.True(t, is)
	require.Equal(t, Spike{Step: 7, Value: 100, Median: 5, Spread: spread, Score: 95 / spread}, spike)
	for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		d := detector()
		_, is := d.Observe(1, value, nil)
		require.True(t, is)
		require.Equal(t, detector(), d, "what is not finite is not remembered")
	}
	early := SpikeDetector{Past: make([]float64, 9)}
	_, is = early.Observe(1, 1e9, nil)
	require.False(t, is, "too few before it")
	small := SpikeDetector{Window: 5}
	for step, value := range []float64{1, 1e9, 1, 1, 1, 1e9} {
		_, is = small.Observe(int64(step), value, nil)
		require.Equal(t, step == 5, is, "a window below Least is enough once it is full: step %d", step)
	}
	_, is = (&SpikeDetector{}).Observe(1, math.NaN(), nil)
	require.True(t, is, "but not for a NaN")
	even := SpikeDetector{Past: []float64{1, 3, 1, 3, 1, 3, 1, 3, 1, 3}}
	spike, is = even.Observe(1, 11, nil)
	require.True(t, is)
	require.Equal(t, 2.0, spike.Median)

	flat := SpikeDetector{}
	for step := range int64(50) {
		_, is = flat.Observe(step, 2+float64(step%2)*0.01, nil)
		require.False(t, is, "0.5 percent of a flat series")
	}
	for step := range int64(200) {
		_, is = flat.Observe(step, 3, nil)
		require.Equal(t, step < 50, is, "a level that stays: step %d", step)
	}
	require.PanicsWithValue(t, negativeOption, func() { (&SpikeDetector{Window: -1}).Observe(0, 0, nil) })
}

func TestSpikeDetectorResumes(t *testing.T) {
	var whole, part SpikeDetector
	for step := range 300 {
		if step == 150 {
			text, err := json.Marshal(part)
			require.NoError(t, err)
			part = SpikeDetector{}
			require.NoError(t, json.Unmarshal(text, &part))
		}
		whole.Observe(int64(step), noisy(step), nil)
		part.Observe(int64(step), noisy(step), nil)
		require.Equal(t, whole, part)
	}
}

// event is one of a hundred values.
func event(step int64, tensor string, st fp8.Stats) telemetry.Event {
	st.Elements = 100
	return telemetry.Event{Step: step, Summary: telemetry.Summary{Tensor: tensor, Op: "forward", Stats: st}}
}

// calm are steps in which one of ten thousand values of each tensor is flushed, and
// nothing else lost.
func calm(t *testing.T, s *Suspects, from, to int64, tensors ...string) {
	t.Helper()
	for step := from; step < to; step++ {
		for _, tensor := range tensors {
			require.NoError(t, s.Event(lossEvent(step, tensor, fp8.Stats{Flushed: 1})))
		}
	}
}

// lossEvent is one of ten thousand values.
func lossEvent(step int64, tensor string, st fp8.Stats) telemetry.Event {
	e := event(step, tensor, st)
	e.Stats.Elements = 10_000
	return e
}

// TestSuspectsRank: of several with evidence, the worst kind and then the most.
func TestSuspectsRank(t *testing.T) {
	first := lossEvent(4, "g", fp8.Stats{})
	first.First = telemetry.NonFinite{Value: math.NaN()}
	ranked := []telemetry.Event{ // from least to most
		lossEvent(4, "b", fp8.Stats{Flushed: 20}),
		lossEvent(4, "a", fp8.Stats{Flushed: 20}),
		lossEvent(4, "c", fp8.Stats{Flushed: 30}),
		lossEvent(4, "d", fp8.Stats{SaturatedNeg: 10, Flushed: 9000}),
		lossEvent(4, "e", fp8.Stats{SaturatedPos: 11}),
		lossEvent(4, "f", fp8.Stats{NaN: 1}),
		first, // no block has to be encoded for it
	}
	for i, want := range ranked {
		for j := range i + 1 {
			var s Suspects
			calm(t, &s, 0, 4, "a", "b", "c", "d", "e")
			require.NoError(t, s.Event(want))
			require.NoError(t, s.Event(ranked[j]))
			got, ok := s.Of(4)
			require.True(t, ok)
			require.Equal(t, want.Tensor, got.Tensor)
			require.Equal(t, want.Stats, got.Stats)
		}
	}
}

// TestSuspectsNeedEvidence: what always loses much is no suspect, however much, and
// neither is what lost little more than before.
func TestSuspectsNeedEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		past []int64 // flushed in the steps before
		now  fp8.Stats
		want bool
	}{
		"as ever":                 {[]int64{900, 900, 900, 900, 900}, fp8.Stats{Flushed: 900}, false},
		"most of all, as ever":    {[]int64{4000, 5000, 4500, 4000, 5000}, fp8.Stats{Flushed: 9999}, false},
		"twice the largest":       {[]int64{900, 1000, 900, 900, 900}, fp8.Stats{Flushed: 2000}, true},
		"not twice the largest":   {[]int64{900, 1000, 900, 900, 900}, fp8.Stats{Flushed: 1999}, false},
		"long before":             {append([]int64{1001}, slices.Repeat([]int64{900}, 16)...), fp8.Stats{Flushed: 2000}, true},
		"not so long before":      {append([]int64{1001}, slices.Repeat([]int64{900}, 15)...), fp8.Stats{Flushed: 2000}, false},
		"0.1 percent more":        {[]int64{1, 1, 1, 1}, fp8.Stats{Flushed: 11}, true},
		"less than that":          {[]int64{1, 1, 1, 1}, fp8.Stats{Flushed: 10}, false},
		"another kind":            {[]int64{900, 900, 900, 900}, fp8.Stats{Flushed: 900, SaturatedPos: 10}, true},
		"too few steps before":    {[]int64{0, 0, 0}, fp8.Stats{Flushed: 9999, SaturatedPos: 1}, false},
		"but for a NaN":           {nil, fp8.Stats{NaN: 1}, true},
		"nothing lost, and never": {[]int64{0, 0, 0, 0}, fp8.Stats{}, false},
	} {
		var s Suspects
		for step, flushed := range c.past {
			require.NoError(t, s.Event(lossEvent(int64(step), "x", fp8.Stats{Flushed: flushed})))
			_, ok := s.Of(int64(step))
			require.False(t, ok && len(c.past) < 10, "%s: step %d", name, step)
		}
		step := int64(len(c.past))
		require.NoError(t, s.Event(lossEvent(step, "x", c.now)))
		_, ok := s.Of(step)
		require.Equal(t, c.want, ok, name)
	}
}

func TestSuspectsOfWhat(t *testing.T) {
	var s Suspects
	calm(t, &s, 0, 5, "x", "y")
	back := lossEvent(5, "x", fp8.Stats{NaN: 1})
	back.Op = "input-gradient"
	require.NoError(t, s.Event(back))
	require.NoError(t, s.Event(lossEvent(5, "y", fp8.Stats{SaturatedPos: 100})))
	require.NoError(t, s.Event(lossEvent(5, "x", fp8.Stats{Flushed: 2})))
	got, ok := s.Of(5)
	require.True(t, ok)
	require.Equal(t, back, got)
	got, ok = s.Of(5, "forward")
	require.True(t, ok, "what comes before the loss")
	require.Equal(t, "y", got.Tensor)
	_, ok = s.Of(5, "weight-gradient")
	require.False(t, ok)
	for _, step := range []int64{4, 6} {
		_, ok = s.Of(step)
		require.False(t, ok, "only the last step is known")
	}
	require.NoError(t, s.Event(lossEvent(5, "y", fp8.Stats{SaturatedPos: 200}))) // another part of the step
	got, _ = s.Of(5, "forward")
	require.EqualValues(t, 200, got.Stats.Saturated())
	require.NoError(t, s.Event(lossEvent(5, "y", fp8.Stats{SaturatedPos: 150})))
	got, _ = s.Of(5, "forward")
	require.EqualValues(t, 200, got.Stats.Saturated())
	_, ok = (*Suspects)(nil).Of(4)
	require.False(t, ok)
}

// TestSuspectsResume: kept as JSON at any step they answer as if they had gone on.
func TestSuspectsResume(t *testing.T) {
	lost := func(step int64, tensor string) telemetry.Event {
		n := int64(10 + step*7%5)
		if step%6 == 5 {
			n *= 20 + step
		}
		if tensor == "y" {
			return lossEvent(step, tensor, fp8.Stats{SaturatedNeg: n})
		}
		return lossEvent(step, tensor, fp8.Stats{Flushed: n, SaturatedPos: n / 100})
	}
	named := 0
	for cut := range int64(40) {
		var whole, part Suspects
		for step := range int64(40) {
			if step == cut {
				text, err := json.Marshal(&part)
				require.NoError(t, err)
				part = Suspects{}
				require.NoError(t, json.Unmarshal(text, &part))
				_, ok := part.Of(step - 1)
				require.False(t, ok, "its events are not kept")
			}
			for _, tensor := range []string{"x", "y"} {
				require.NoError(t, whole.Event(lost(step, tensor)))
				require.NoError(t, part.Event(lost(step, tensor)))
			}
			want, is := whole.Of(step)
			got, ok := part.Of(step)
			require.Equal(t, is, ok)
			require.Equal(t, want, got)
			if is {
				named++
			}
		}
	}
	require.Positive(t, named)

	s := Suspects{}
	calm(t, &s, 0, 5, "x")
	for text, want := range map[string]error{
		`{"version":2}`: ErrVersion,
		`{}`:            ErrVersion,
		`{"version":1,"operands":[{"tensor":"x","steps":0}]}`:                    ErrInput,
		`{"version":1,"operands":[{"tensor":"x","steps":18}]}`:                   ErrInput,
		`{"version":1,"operands":[{"tensor":"x","steps":2,"flushed":[1]}]}`:      ErrInput,
		`{"version":1,"operands":[{"tensor":"x","steps":2,"flushed":[0.1,-1]}]}`: ErrInput,
	} {
		require.ErrorIs(t, json.Unmarshal([]byte(text), &s), want, text)
	}
	require.Len(t, s.operands, 1, "as it was")
}

// TestSpikeNamesTheTensor: a weight that grew a thousandfold between steps saturates
// under its delayed scale.
func TestSpikeNamesTheTensor(t *testing.T) {
	var suspects Suspects
	recorder := telemetry.New(&suspects)
	model, optimizer := newRun(t, runs()["fp8 delayed"].Config, optim.Moments{}, 5)
	model.Listen(recorder)
	for step := range 6 {
		require.NoError(t, recorder.Step(int64(step)))
		resume(t, model, optimizer, step, step+1)
	}
	require.NoError(t, recorder.Step(6))
	weight := model.Param(someWeight)
	for i := range weight.Value {
		weight.Value[i] *= 1000
	}
	tokens := []int32{1, 2, 3, 4}
	_, err := model.Loss(t.Context(), tokens, tokens, 1, 4)
	require.NoError(t, err)
	require.NoError(t, recorder.Flush())
	losses := SpikeDetector{Least: 1, Past: []float64{4, 4}}
	spike, is := losses.Observe(6, 9, &suspects)
	require.True(t, is)
	require.NotNil(t, spike.Suspect)
	require.Equal(t, someWeight, spike.Suspect.Tensor)
	require.Equal(t, "forward", spike.Suspect.Op)
}
