package train

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
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
	require.False(t, isFinite(float64(bad)))
	require.EqualValues(t, 1, optimizer.Skipped())

	up.Value[5], up.Value[6] = good5, good6
	model.DropStep()
	state := optimizer.State()
	state.Skipped = 0
	moments, err := optimizer.Tensors(model.Params())
	require.NoError(t, err)
	require.NoError(t, optimizer.Restore(state, model.Params(), func(all []optim.Tensor) error {
		for i, m := range all {
			copy(m.Float32, moments[i].Float32)
			copy(m.Codes, moments[i].Codes)
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

func TestSuspects(t *testing.T) {
	first := event(4, "f", fp8.Stats{})
	first.First = telemetry.NonFinite{Value: math.NaN()}
	ranked := []telemetry.Event{ // from least to most
		event(4, "a", fp8.Stats{Flushed: 1}),
		event(4, "b", fp8.Stats{Flushed: 2}),
		event(4, "d", fp8.Stats{SaturatedNeg: 1}),
		event(4, "c", fp8.Stats{SaturatedPos: 1}),
		event(4, "e", fp8.Stats{NaN: 1, SaturatedPos: 1}),
	}
	for i, want := range ranked {
		for j := range i + 1 {
			var s Suspects
			require.NoError(t, s.Event(event(4, "zero", fp8.Stats{})))
			require.NoError(t, s.Event(want))
			require.NoError(t, s.Event(ranked[j]))
			got, ok := s.Of(4)
			require.True(t, ok)
			require.Equal(t, want, got)
		}
	}
	var s Suspects
	for _, e := range append(ranked[:4:4], first, event(5, "later", fp8.Stats{Flushed: 1})) {
		require.NoError(t, s.Event(e))
	}
	got, ok := s.Of(4)
	require.True(t, ok)
	require.Equal(t, "f", got.Tensor, "no block has to be encoded for it")
	got, _ = s.Of(5)
	require.Equal(t, "later", got.Tensor)
	_, ok = s.Of(6)
	require.False(t, ok)
	require.NoError(t, s.Event(event(12, "x", fp8.Stats{Flushed: 1})))
	_, ok = s.Of(4)
	require.False(t, ok, "long ago")
	_, ok = (*Suspects)(nil).Of(4)
	require.False(t, ok)
	require.NoError(t, s.Event(event(13, "x", fp8.Stats{})))
	_, ok = s.Of(13)
	require.False(t, ok, "nothing was lost")
}

// TestSpikeNamesTheTensor: a weight that grew a thousandfold between steps saturates
// under its delayed scale.
func TestSpikeNamesTheTensor(t *testing.T) {
	var suspects Suspects
	recorder := telemetry.New(&suspects)
	model, optimizer := newRun(t, runs()["fp8 delayed"].Config, optim.Moments{}, 5)
	resume(t, model, optimizer, 0, 2)
	model.Listen(recorder)
	require.NoError(t, recorder.Step(2))
	weight := model.Param(someWeight)
	for i := range weight.Value {
		weight.Value[i] *= 1000
	}
	tokens := []int32{1, 2, 3, 4}
	_, err := model.Loss(t.Context(), tokens, tokens, 1, 4)
	require.NoError(t, err)
	require.NoError(t, recorder.Flush())
	losses := SpikeDetector{Least: 1, Past: []float64{4, 4}}
	spike, is := losses.Observe(2, 9, &suspects)
	require.True(t, is)
	require.NotNil(t, spike.Suspect)
	require.Equal(t, someWeight, spike.Suspect.Tensor)
	require.Equal(t, "forward", spike.Suspect.Op)
}
