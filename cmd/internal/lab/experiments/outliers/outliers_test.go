package outliers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/labtest"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/cmd/internal/text"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/telemetry"
)

// ownOutliers is the short version with one worker, on the activations of its own model.
var ownOutliers = sync.OnceValues(func() (*study, error) {
	return doStudy(context.Background(), outlierOptions(), new(lab.Steps))
})

func ownStudy(t *testing.T) *study {
	t.Helper()
	s, err := ownOutliers()
	require.NoError(t, err)
	return s
}

func outlierOptions() lab.Options {
	data := strings.Repeat("one two, buckle my shoe; three four, knock at the door; ", 400)
	return lab.Options{Seed: 1, Length: lab.Short, Workers: 1, Text: text.New("a rhyme", []byte(data))}
}

// TestOutliers: what the theory says of a delayed scale, of smoothing and of scales just in
// time is seen in the short version. Whether it costs anything takes a longer training.
func TestOutliers(t *testing.T) {
	s := ownStudy(t)
	plan := s.plan
	late := func(r int, figure func(stepFigures) float64) float64 { return s.runs[r].largest(plan.late, figure) }
	before := func(step int) bool { return step > 1 && step < plan.window }

	// A margin of 16 is a reach of 1/16 before; 12 and 12² times that is the growth.
	for _, r := range []int{delayedRun, channelRun, tokenRun} {
		reach := s.runs[r].largest(before, stepFigures.reach)
		require.InDelta(t, 1.0/16, reach, 0.3/16, s.runs[r].name)
	}
	require.InDelta(t, 9, late(delayedRun, stepFigures.reach), 4.5)
	require.InDelta(t, 0.75, late(channelRun, stepFigures.reach), 0.9)
	require.InDelta(t, 0.75, late(tokenRun, stepFigures.reach), 0.9)
	require.InDelta(t, 1, late(currentRun, stepFigures.reach), 1e-3)
	require.LessOrEqual(t, late(blockRun, stepFigures.reach), 1.001)
	require.Greater(t, late(delayedRun, saturatedOf), 5*late(channelRun, saturatedOf))
	require.Zero(t, late(currentRun, saturatedOf)+late(blockRun, saturatedOf))
	require.Zero(t, s.runs[delayedRun].largest(before, saturatedOf))

	// The scale of a window is the one of its first step; the next knows the outliers.
	for step := plan.window; step < 2*plan.window; step++ {
		at := s.runs[delayedRun].steps[step]
		require.Equal(t, s.runs[delayedRun].steps[plan.window].limit, at.limit, "step %d", step)
	}
	require.InDelta(t, 144, s.runs[delayedRun].steps[2*plan.window].limit/s.runs[delayedRun].steps[plan.window].limit, 70)

	require.InDelta(t, 2, slope(s.law, 0), 0.05)
	require.InDelta(t, 1, slope(s.law, 1), 0.05)
	require.InDelta(t, 1, slope(s.law, 2), 0.05)
	for i, r := range s.runs {
		require.InDelta(t, s.runs[fp32Run].steps[0].loss, r.steps[0].loss, 0.01*r.steps[0].loss, "all begin alike")
		require.Equal(t, i == fp32Run, r.steps[0].limit == 0, "%s: nobody hears of FP32", r.name)
		for step, at := range r.steps {
			require.Equal(t, step%4 != 1, math.IsNaN(at.heldOut), "%s, step %d", r.name, step)
		}
	}
	require.Len(t, s.aligned, plan.layers*plan.neurons)
	require.Greater(t, statistics.Median(slices.Clone(s.aligned)), 1.0, "what the branches have in common no longer misses the rest")
	require.Less(t, s.losses.trained, 5.0, "it learns: a guess costs ln 256 = 5.5")
}

// TestOutliersJump: what a scale from before can hold when the gain has grown.
func TestOutliersJump(t *testing.T) {
	s := ownStudy(t)
	reach := map[string][]float64{}
	for _, j := range s.jumps {
		for i, at := range j.at {
			require.Equal(t, jumpGains[i], at.gain)
			reach[j.name] = append(reach[j.name], at.reach)
			if at.reach > 1.1 {
				require.NotZero(t, at.saturated, "%s, gain %v", j.name, at.gain)
			}
		}
	}
	require.Len(t, reach, 9)
	cfg := s.base.Model.Config()
	cfg.FP8 = lateRecipes(0)
	m, err := nn.NewLlama(cfg, 0)
	require.NoError(t, err)
	require.NoError(t, s.settle(t.Context(), m))
	state := m.Shared().Scaling().State().Histories
	require.EqualValues(t, 2, state.Step, "a window to get to know scales, and one with them")
	for name, h := range state.Histories {
		require.Zero(t, h.Blocks[0].Current, name)
	}
	for i, gain := range jumpGains {
		if gain < 4 {
			continue
		}
		require.InEpsilon(t, gain*gain, reach["plain, margin 0"][i], 0.7)
		require.InEpsilon(t, gain*gain/16, reach["plain, margin 4"][i], 0.7)
		require.InEpsilon(t, gain, reach["per channel, margin 0"][i], 0.7)
		require.InEpsilon(t, gain/16, reach["per token, margin 4"][i], 0.7)
		require.InDelta(t, 1, reach["just in time"][i], 1e-3)
	}
}

func TestOutliersOnRealActivations(t *testing.T) {
	f, err := safetensors.Open(testutil.Shared(t, "data", "stories260K_activations.safetensors"))
	require.NoError(t, err)
	defer f.Close()
	layers, err := branchesIn(f)
	require.NoError(t, err)
	require.Len(t, layers, 5)
	for layer, b := range layers {
		require.Equal(t, 160, b.tokens())
		require.Equal(t, 172, b.channels)
		want, err := f.Float32s(fmt.Sprintf("layers.%d.swiglu", layer))
		require.NoError(t, err)
		require.InDeltaSlice(t, want, b.plain(), 1e-5)
		figures, err := realOf(t.Context(), b)
		require.NoError(t, err)
		require.Equal(t, figures.amax, figures.channels[0])
		require.Len(t, figures.channels, 172)
		for i, scheme := range realSchemes() {
			requireFidelity(t, plainlyEncoded(b, scheme), figures.asIs[i])
			if layer == 4 {
				after := b.withGain(7, 100, 300)
				got, err := scheme.encode(t.Context(), after)
				require.NoError(t, err)
				requireFidelity(t, plainlyEncoded(after, scheme), got)
			}
			require.Greater(t, figures.asIs[i].sqnr, 30.0)
			require.Equal(t, i > 0, figures.grown[i].sqnr > 10, "layer %d, %s: %v dB", layer, scheme.name, figures.grown[i].sqnr)
		}
		require.NotZero(t, figures.grown[0].saturated)
	}

	own := ownStudy(t)
	s := *own
	s.options.Activations, s.real = f, nil
	require.NoError(t, s.lookAtReal(context.Background()))
	require.Len(t, s.real, 5)
	for _, g := range s.realGoals() {
		require.True(t, g.Met(), "%s: %s", g.What, g.Got)
	}
	r := s.report()
	require.NotContains(t, strings.Join(r.Limits, " "), "--activations was not given")
	require.Contains(t, strings.Join(own.report().Limits, " "), "--activations was not given")
	var page strings.Builder
	require.NoError(t, r.WritePage(&page, report.Setting{}))
	require.Equal(t, len(r.Charts), strings.Count(page.String(), "<svg"))
}

func TestOutliersRun(t *testing.T) {
	labtest.Slow(t)
	labtest.Judged(t, labtest.Run(t, Experiment, outlierOptions()), 5, 12)
}

func requireFidelity(t *testing.T, want, got fidelity) {
	t.Helper()
	require.InDelta(t, want.sqnr, got.sqnr, 1e-4)
	require.InDelta(t, want.saturated, got.saturated, 1e-9)
	require.InDelta(t, want.flushed, got.flushed, 1e-9)
}

// plainlyEncoded is realScheme.encode by definition: each value is the nearest that E4M3
// has, ties to even, found by looking at all.
func plainlyEncoded(b branches, s realScheme) fidelity {
	half, channels := b.tokens()/2, b.channels
	z := b.plain()
	// What a value is multiplied by before it is quantized: half of the tokens has a scale
	// for each channel.
	smooth := func(at int) float64 { return 1 }
	switch {
	case strings.HasPrefix(s.name, "per channel"):
		var amax [2][]float64
		amax[0], amax[1] = channelAmax(b.up[:half*channels], channels), channelAmax(b.up[half*channels:], channels)
		smooth = func(at int) float64 { return math.Exp2(-math.Floor(math.Log2(amax[at/channels/half][at%channels]))) }
	case strings.HasPrefix(s.name, "per token"):
		smooth = func(at int) float64 {
			first := at / channels * channels
			return math.Exp2(-math.Floor(math.Log2(largestMagnitude(b.up[first : first+channels]))))
		}
	}
	smoothed := make([]float32, len(z))
	for at, v := range z {
		smoothed[at] = float32(float64(v) * smooth(at))
	}
	past, present := smoothed[:half*channels], smoothed[half*channels:]
	ofTensor := 448 / float32(largestMagnitude(present))
	if strings.HasSuffix(s.name, "delayed") {
		ofTensor = 28 / float32(largestMagnitude(past))
	}
	var f fidelity
	var signal, noise float64
	for i, v := range present {
		factor := ofTensor
		if s.name == "blocks" {
			row, column := i/channels*channels, i%channels
			block := present[row+column/128*128 : row+min(column/128*128+128, channels)]
			factor = float32(math.Exp2(math.Floor(math.Log2(448 / largestMagnitude(block)))))
		}
		scaled := math.Abs(float64(v * factor))
		nearest := nearestE4M3(scaled)
		if scaled >= 464 {
			f.saturated += 1 / float64(len(present))
		}
		if v != 0 && nearest == 0 {
			f.flushed += 1 / float64(len(present))
		}
		at := half*channels + i
		left := nearest * float64(1/factor) / smooth(at)
		signal += math.Pow(float64(z[at]), 2)
		noise += math.Pow(math.Abs(float64(z[at]))-left, 2)
	}
	f.sqnr = 10 * math.Log10(signal/noise)
	return f
}

// valuesOfE4M3 are those that are not negative, by code.
var valuesOfE4M3 = func() (values []float64) {
	for code := range 127 {
		if code < 8 { // subnormal
			values = append(values, float64(code)/8/64)
		} else {
			values = append(values, (1+float64(code%8)/8)*math.Exp2(float64(code/8-7)))
		}
	}
	return values
}()

// nearestE4M3 returns the value of E4M3 nearest to x, which is not negative.
func nearestE4M3(x float64) float64 {
	above, _ := slices.BinarySearch(valuesOfE4M3, x)
	switch {
	case above == len(valuesOfE4M3):
		return 448
	case above == 0:
		return 0
	}
	low, high := valuesOfE4M3[above-1], valuesOfE4M3[above]
	if d := (x - low) - (high - x); d > 0 || d == 0 && above%2 == 0 {
		return high
	}
	return low
}

func TestFilesOfActivations(t *testing.T) {
	write := func(tensors ...safetensors.Tensor) *safetensors.File {
		path := t.TempDir() + "/a"
		require.NoError(t, safetensors.WriteFile(path, tensors, nil))
		f, err := safetensors.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	tensor := func(name string, shape ...int) safetensors.Tensor {
		n := 4
		for _, d := range shape {
			n *= d
		}
		return safetensors.Tensor{Info: safetensors.Info{Name: name, DType: safetensors.F32, Shape: shape}, Data: make([]byte, n)}
	}
	_, err := branchesIn(write(tensor("x", 2, 2)))
	require.EqualError(t, err, "the activations have no layers.0.gate: --activations wants layers.N.gate and layers.N.up")
	_, err = branchesIn(write(tensor("layers.0.gate", 2, 3), tensor("layers.0.up", 2, 2)))
	require.EqualError(t, err, "layers.0.gate is [2 3] and layers.0.up is [2 2]: they must both be [tokens, channels], with two tokens at least")
	for _, shape := range [][]int{{2}, {1, 2}, {2, 0}} {
		_, err = branchesIn(write(tensor("layers.0.gate", shape...), tensor("layers.0.up", shape...)))
		require.ErrorContains(t, err, "with two tokens at least")
	}
	bad := tensor("layers.0.up", 2, 2)
	bad.Data[11], bad.Data[10] = 0x7f, 0xc0
	_, err = branchesIn(write(tensor("layers.0.gate", 2, 2), bad))
	require.EqualError(t, err, "layers.0.up: element 2 is NaN: activations must be finite")
	bad.Data[10] = 0x80
	_, err = branchesIn(write(tensor("layers.0.gate", 2, 2), bad))
	require.EqualError(t, err, "layers.0.up: element 2 is +Inf: activations must be finite")
	layers, err := branchesIn(write(tensor("layers.0.gate", 2, 2), tensor("layers.0.up", 2, 2), tensor("layers.2.gate", 2, 2)))
	require.NoError(t, err)
	require.Len(t, layers, 1)
}

func TestGainGrowsInHalf(t *testing.T) {
	b := branches{gate: []float32{1, 2, 3, 4}, up: []float32{5, 6, 7, 8}, channels: 2}
	after := b.withGain(1, 1, 10)
	require.Equal(t, []float32{1, 2, 3, 40}, after.gate)
	require.Equal(t, []float32{5, 6, 7, 80}, after.up)
	require.Equal(t, []float32{1, 2, 3, 4}, b.gate)
}

func TestRealFiguresByHand(t *testing.T) {
	// Gates are so far from 0 that z is their product with up.
	b := branches{name: "b", channels: 2, gate: []float32{100, 100, 100, 100, 100, 100, 100, 100}, up: []float32{1, 8, 2, 1, -1, 3, 5, -2}}
	f, err := realOf(t.Context(), b)
	require.NoError(t, err)
	require.Equal(t, "b", f.name)
	require.Equal(t, 800.0, f.amax)
	require.Equal(t, 200.0, f.median)
	require.Equal(t, []float64{800, 500}, f.channels)
	require.Equal(t, 5.0/8, f.halves)
	require.Equal(t, 0.75, f.tokens, "800, 300 and 200, of the same channel")
	// The first channel is the larger one of the second half, and grows there: 12² times
	// 500 under a scale that holds 16 times 800.
	require.Equal(t, 0.5, f.grown[0].saturated)
	require.Zero(t, f.asIs[0].saturated)
	left := []float64{-14400 + 12800, 0, 72000 - 12800, 0}
	require.InDelta(t, 10*math.Log10((14400*14400+72000*72000)/(left[0]*left[0]+left[2]*left[2])), f.grown[0].sqnr, 0.1)
}

func TestSlope(t *testing.T) {
	law := []gainFigures{{1, []float64{100}}, {4, []float64{2}}, {8, []float64{16}}, {16, []float64{128}}}
	require.InDelta(t, 3, slope(law, 0), 1e-12, "gains below 4 do not count")
}

func TestSinkOfDownInputs(t *testing.T) {
	steps := make([]stepFigures, 2)
	event := func(step int64, tensor, op string, amax float64, scale float32, saturated, flushed int64) {
		e := telemetry.Event{Step: step, Summary: telemetry.Summary{
			Tensor: tensor, Op: op, Blocks: 1, ScaleMin: scale, ScaleMax: scale,
			Stats: fp8.Stats{Elements: 100, Amax: amax, SaturatedPos: saturated, Flushed: flushed},
		}}
		require.NoError(t, downInputs{steps}.Event(e))
	}
	event(1, "model.layers.0.mlp.down_proj.input", "forward", 896, 1, 3, 10)
	event(1, "model.layers.1.mlp.down_proj.input", "forward", 448, 2, 5, 0)
	event(1, "model.layers.2.mlp.down_proj.input", "forward", 5, 1, 1, 2)
	event(1, "model.layers.1.mlp.down_proj.input", "weight-gradient", 9e9, 1, 50, 90)
	event(1, "model.layers.1.mlp.down_proj.gradient", "input-gradient", 9e9, 1, 7, 90)
	event(1, "model.layers.1.mlp.up_proj.input", "forward", 9e9, 1, 6, 90)
	require.Equal(t, []stepFigures{{}, {amax: 896, limit: 448, saturated: 0.05, flushed: 0.1, elsewhere: 0.07}}, steps)
	require.Equal(t, 2.0, steps[1].reach())
}

func TestFiguresOfRuns(t *testing.T) {
	fp32 := &continuation{steps: []stepFigures{{heldOut: 2}, {heldOut: math.NaN()}, {heldOut: 4}, {heldOut: 2}}}
	r := &continuation{steps: []stepFigures{{heldOut: 3, saturated: 0.5}, {heldOut: math.NaN(), saturated: 0.7}, {heldOut: 5}, {heldOut: 1, saturated: 0.1}}}
	require.Equal(t, 50.0, r.largestGap(fp32, anyStep))
	require.Equal(t, 25.0, r.largestGap(fp32, func(step int) bool { return step > 0 }))
	require.Equal(t, -50.0, r.lastGap(fp32))
	require.Equal(t, 3, r.saturatedSteps())
	require.Equal(t, 0.7, r.largest(anyStep, saturatedOf))
	require.Equal(t, 0.1, r.largest(func(step int) bool { return step > 1 }, saturatedOf))
	r.steps[3].heldOut = math.NaN()
	require.Equal(t, 25.0, r.lastGap(fp32))
}

// TestOutlierGoalsCanFail: each goal of the runs is missed if the runs are other ones.
func TestOutlierGoalsCanFail(t *testing.T) {
	study := func(change func(runs []*continuation)) (missed []string) {
		s := &study{plan: plan{window: 1, windows: 3, every: 1}}
		s.runs = continuations(s.plan)
		for _, r := range s.runs {
			r.steps = []stepFigures{{heldOut: 2}, {heldOut: 2, amax: 1, limit: 1}, {heldOut: 2}}
		}
		s.runs[delayedRun].steps[1] = stepFigures{heldOut: 2.02, amax: 9, limit: 1, saturated: 0.01}
		change(s.runs)
		for _, g := range s.runGoals() {
			if !g.Met() {
				missed = append(missed, g.What)
			}
		}
		return missed
	}
	require.Empty(t, study(func([]*continuation) {}))
	for _, test := range []struct {
		change func(runs []*continuation)
		missed string
	}{
		{func(runs []*continuation) { runs[delayedRun].steps[1].amax = 4 }, "Delayed: largest input"},
		{func(runs []*continuation) { runs[delayedRun].steps[1].amax = 19 }, "Delayed: largest input"},
		{func(runs []*continuation) { runs[delayedRun].steps[1].heldOut = 2.009 }, "Delayed: largest gap"},
		{func(runs []*continuation) { runs[channelRun].steps[1].saturated = 0.0002 }, "input: Smooth per channel"},
		{func(runs []*continuation) { runs[tokenRun].steps[2].saturated = 0.0002 }, "input: Smooth per token"},
		{func(runs []*continuation) { runs[currentRun].steps[1].heldOut = 2.006 }, "late: just in time"},
		{func(runs []*continuation) { runs[blockRun].steps[1].heldOut = 2.006 }, "late: blocks"},
	} {
		missed := study(test.change)
		require.Len(t, missed, 1, test.missed)
		require.Contains(t, missed[0], test.missed)
	}
}

func TestLawGoalsCanFail(t *testing.T) {
	met := func(cosine, top, power float64) (all []bool) {
		s := &study{plan: plan{dim: 128, layers: 2}}
		s.natural = []naturalFigures{{cosine: 0.01}, {}, {cosine: 0.5, cosineTop: 0.9}, {cosine: cosine, cosineTop: top}}
		for _, gain := range []float64{4, 8, 16} {
			s.law = append(s.law, gainFigures{gain, []float64{math.Pow(gain, power), gain, 3 * gain}})
		}
		for _, g := range s.lawGoals() {
			all = append(all, g.Met())
		}
		return all
	}
	require.Equal(t, []bool{true, true, true, true}, met(0.07, 0.08, 2.04))
	require.Equal(t, []bool{false, false, true, true}, met(0.05, 0.08, 2.06), "as at random; too steep")
	require.Equal(t, []bool{false, false, true, true}, met(0.08, 0.07, 1.94), "the largest are less aligned")
}
