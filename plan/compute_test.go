package plan_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/plan"
)

func TestTrainingFLOPs(t *testing.T) {
	for _, c := range []struct {
		name                   string
		products, full, causal float64
	}{
		{"llama-3-70b", 4.170e11, 4.492e11, 4.331e11},
		{"llama-3-8b", 4.503e10, 5.147e10, 4.825e10},
		{"deepseek-v3", 2.197e11, 2.812e11, 2.505e11},
		{"kimi-k2", 1.901e11, 2.208e11, 2.055e11},
	} {
		f, err := shape(t, c.name, layersOf(t, c.name), nil).TrainingFLOPs(4096)
		require.NoError(t, err)
		assert.InEpsilon(t, c.products, f.Products, 3e-4, c.name)
		assert.InEpsilon(t, c.full, f.Unmasked(), 3e-4, c.name)
		assert.InEpsilon(t, c.causal, f.Masked(), 3e-4, c.name)
	}
}

func layersOf(t *testing.T, name string) int {
	m, err := plan.Named(name)
	require.NoError(t, err)
	return m.Layers
}

// TestAttentionFLOPs counts the pairs of a small model one by one.
func TestAttentionFLOPs(t *testing.T) {
	const heads, width, sequence = 4, 16, 100
	m := plan.Model{Layers: 3, Hidden: 64, Vocab: 128, Heads: heads, FFN: 128}
	for _, window := range []int{0, 7, 99, 100, 1000} {
		m.Window, m.FullEvery = window, 3
		pairs := 0.
		for layer := range m.Layers {
			for i := range sequence {
				for j := range i + 1 {
					if window == 0 || layer == 2 || i-j < window {
						pairs++
					}
				}
			}
		}
		// Published counts take half of a square and not what is below its diagonal and on it.
		for layer := range m.Layers {
			seen := sequence
			if window > 0 && layer != 2 {
				seen = min(window, sequence)
			}
			pairs -= float64(seen) / 2
		}
		f, err := m.TrainingFLOPs(sequence)
		require.NoError(t, err)
		// Scores and results, in the forward pass and twice that in the backward pass.
		want := 3 * 2 * 2 * pairs * heads * width
		assert.InEpsilon(t, want, f.Causal*sequence, 1e-12, "window %d", window)
		if window == 0 {
			assert.Equal(t, 2*f.Causal, f.Full)
		}
	}
}

func TestDecodeFLOPs(t *testing.T) {
	const context = 10000
	f, err := shape(t, "llama-3-70b", 80, nil).DecodeFLOPs(context)
	require.NoError(t, err)
	assert.Equal(t, 2*69_501_714_432., f.Products)
	assert.Equal(t, 4.*80*context*64*128, f.Full)
	f, err = shape(t, "deepseek-v3", 61, nil).DecodeFLOPs(context)
	require.NoError(t, err)
	assert.Equal(t, 2.*61*128*context*(2*512+64), f.Full)
}

// TestMeasuredMFU takes the published times of steps on 8 B200, of 2250 TFLOP/s each.
func TestMeasuredMFU(t *testing.T) {
	models := benchmark(t)
	for _, c := range []struct {
		model          string
		sequence, size int
		ms, mfu        []float64
	}{
		{"70B-L12", 4096, 16, []float64{843.0, 1476.8, 5436.5}, []float64{30.37, 34.68, 37.68}},
		{"70B-L12", 4096, 8, []float64{409.8, 765.6, 2964.6}, []float64{31.24, 33.44, 34.55}},
		{"V2-L4", 4096, 32, []float64{366.6, 676.2, 2721.3}, []float64{26.39, 28.61, 28.44}},
		{"V3-L4", 4096, 32, []float64{603.2, 1101.7, 4141.2}, []float64{26.09, 28.57, 30.40}},
		{"405B-L4", 4096, 16, []float64{1074.6, 1935.4, 7046.4}, []float64{31.01, 34.44, 37.83}},
		{"405B-L4", 4096, 8, []float64{476.0, 899.6, 3455.4}, []float64{35.00, 37.04, 38.58}},
		{"70B-L12", 32768, 4, []float64{1758.0}, []float64{36.13}},
		{"405B-L4", 32768, 4, []float64{1984.7}, []float64{37.72}},
		{"70B-L12", 131072, 4, []float64{11315.7}, []float64{37.38}},
		{"405B-L4", 131072, 4, []float64{10577.6}, []float64{38.95}},
	} {
		f, err := models[c.model].TrainingFLOPs(c.sequence)
		require.NoError(t, err)
		for i, ms := range c.ms {
			sequences := c.size * []int{1, 2, 8}[i]
			flops := f.Masked() * float64(c.sequence) * float64(sequences)
			mfu, err := plan.ImpliedMFU(flops, 8, 2250e12, ms/1000)
			require.NoError(t, err)
			assert.InDelta(t, c.mfu[i], 100*mfu, 0.011, "%s of %d, %d sequences", c.model, c.sequence, sequences)
		}
	}
}

func TestStep(t *testing.T) {
	job := plan.TrainJob{Model: benchmark(t)["70B-L12"], Sequence: 4096, Batches: 8}
	job.Layout = plan.Layout{Ranks: 8, Pipeline: 2}
	s, err := job.Step(2250e12, 0.3468, false)
	require.NoError(t, err)
	assert.EqualValues(t, 32*4096, s.Tokens)
	assert.InEpsilon(t, 1.4768, s.Seconds, 1e-3, "row 9")
	assert.Equal(t, 1./8, s.Bubble)
	longer, err := job.Step(2250e12, 0.3468, true)
	require.NoError(t, err)
	assert.InEpsilon(t, s.Seconds*9/8, longer.Seconds, 1e-12)
}

func TestQuotes(t *testing.T) {
	want := []float64{40.06, 36.17, 30.61, 40.07, 36.71, 31.70, 18.98, 17.08, 14.63}
	common := map[int]float64{1024: 0.3987, 5000: 0.359, 10000: 0.307}
	quotes := plan.Quotes()
	require.Len(t, quotes, len(want))
	for i, q := range quotes {
		assert.InDelta(t, want[i], 100*q.MFU(), 0.006, "%+v", q)
		mfu, err := plan.ImpliedMFU(q.FLOPs, q.Cards, 0, q.Days*24*3600)
		require.NoError(t, err)
		assert.InEpsilon(t, q.MFU(), mfu, 1e-12)

		flops := q.FLOPs
		if q.Model == "GPT-4" {
			flops = plan.GPT4FLOPs
		}
		days, err := plan.Pace{Cards: q.Cards, MFU: common[q.Cards]}.Days(flops)
		require.NoError(t, err)
		assert.Equal(t, q.Days, math.Round(days), "%+v", q)
	}
}

func TestPaceErrors(t *testing.T) {
	for _, c := range []struct {
		pace plan.Pace
		want string
	}{
		{plan.Pace{MFU: 0.4}, "cards is 0"},
		{plan.Pace{Cards: 8}, "mfu is 0"},
		{plan.Pace{Cards: 8, MFU: 1.1}, "mfu is 1.1"},
		{plan.Pace{Cards: 8, MFU: math.NaN()}, "mfu is NaN"},
		{plan.Pace{Cards: 8, MFU: 0.5, Peak: -1}, "peak is -1"},
	} {
		_, err := c.pace.Seconds(1e20)
		require.ErrorContains(t, err, c.want)
	}
	_, err := plan.Pace{Cards: 1, MFU: 1}.Days(math.Inf(1))
	require.ErrorContains(t, err, "the FLOPs is +Inf")
	_, err = plan.ImpliedMFU(1e20, 8, 0, 0)
	require.ErrorContains(t, err, "the time is 0")
	_, err = shape(t, "llama-3-8b", 32, nil).TrainingFLOPs(0)
	require.ErrorContains(t, err, "sequence is 0")
}
