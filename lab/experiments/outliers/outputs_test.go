package outliers

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestSameStaleness: in an arm of one age, its smoothing is as old as its tensor's scale, and
// looks back as far; the fresh arm's is not.
func TestSameStaleness(t *testing.T) {
	for _, a := range arms() {
		s := a.smoother()
		switch {
		case s == nil:
			require.False(t, a.smooth, a.name)
		case a.timing == justInTime || a.fresh:
			require.Zero(t, s.Delay, a.name)
		default:
			require.Equal(t, a.recipe().Delayed.Length, s.Delay, a.name)
		}
		require.Equal(t, a.timing != justInTime, a.recipe().Profile.Delayed(), a.name)
		require.Equal(t, a.recipe(), a.recipes().Forward.A)
		require.NoError(t, a.recipe().Check())
		require.False(t, a.trained && !a.loss)
	}
}

func TestRenews(t *testing.T) {
	for _, test := range []struct {
		timing       timing
		settling, on bool
	}{{justInTime, false, false}, {eachStep, true, true}, {late, true, false}} {
		a := arm{timing: test.timing}
		require.Equal(t, test.settling, a.renews(7, 8))
		require.Equal(t, test.on, a.renews(8, 8))
		require.Equal(t, test.on, a.renews(15, 8))
	}
}

// TestGrowthUnderArms: both branches of an aligned neuron grow threefold, and z ninefold, after
// scales were renewed. What follows from that is not a question to an experiment: scales that
// are late are exceeded by the square, whatever the smoothing, which is as late; smoothing that
// is just in time leaves the gain; scales just in time are not exceeded.
func TestGrowthUnderArms(t *testing.T) {
	const gain = 3
	var before, after branches
	before.channels, after.channels = 128, 128
	for i := range 4 * 128 {
		x := float32(20 + i%7) // far from 0, where SwiGLU is the square
		before.gate, before.up = append(before.gate, x), append(before.up, x)
		after.gate, after.up = append(after.gate, gain*x), append(after.up, gain*x)
	}
	want := map[string]float64{
		plainLate: gain * gain, channelLate: gain * gain, tokenLate: gain * gain, blocksLate: gain * gain,
		plainEach: gain * gain, channelEach: gain * gain, // of the step before
		plainNow: 1, channelNow: 1, tokenNow: 1, blocksNow: 1,
	}
	for _, a := range arms() {
		e, err := newEncoder(a)
		require.NoError(t, err)
		_, _, err = e.encode(t.Context(), before)
		require.NoError(t, err)
		e.renew()
		_, f, err := e.encode(t.Context(), after)
		require.NoError(t, err)
		if a.name == channelFresh { // a power of two at each time: up to a factor of 2 from the gain
			require.Greater(t, f.reach, gain/2.0)
			require.Less(t, f.reach, gain*2.0)
			continue
		}
		require.InEpsilon(t, want[a.name], f.reach, 1e-5, a.name)
		require.Equal(t, want[a.name] > 1, f.saturated > 0, a.name)
		require.Equal(t, want[a.name] > 1, f.input > 0.5, a.name)
	}
}

func TestReachByHand(t *testing.T) {
	z := []float32{1, -8, 2, 4}
	whole := &tensor.Tensor{Shape: []int{2, 2}, Scales: []float32{2. / 448}}
	require.InDelta(t, 4, reachOf(z, whole), 1e-6)
	rows := &tensor.Tensor{Shape: []int{2, 2}, Block: tensor.Block{Rows: 1}, Scales: []float32{16. / 448, 1. / 448}}
	require.InDelta(t, 4, reachOf(z, rows), 1e-6)
}

func TestProjectionByHand(t *testing.T) {
	p := projection{down: []float32{1, 2, 3, 4}, channels: 2} // [2, 2]
	// Outputs of (1, 1) and (2, 0): (3, 7) and (2, 6).
	require.InDelta(t, math.Sqrt(9+49+4+36), p.norm([]float32{1, 1, 2, 0}), 1e-12)
}

// TestGivenActivations: all that an arm makes of a real model's is what E4M3 is by definition.
func TestGivenActivations(t *testing.T) {
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
		figures, err := givenOf(t.Context(), b)
		require.NoError(t, err)
		require.Equal(t, figures.amax, figures.channels[0])
		require.Len(t, figures.channels, 172)
		for i, a := range arms() {
			if a.fresh || a.smooth && a.timing != justInTime || a.block != (tensor.Block{}) && a.timing != justInTime {
				continue
			}
			want := plainlyEncoded(b, a)
			require.InDelta(t, want.input, figures.arms[i].input, 1e-6, a.name)
			require.InDelta(t, want.saturated, figures.arms[i].saturated, 1e-9, a.name)
			require.InDelta(t, want.flushed, figures.arms[i].flushed, 1e-9, a.name)
		}
	}
}

// plainlyEncoded is what an arm makes of the second half by definition: each value is the
// nearest that E4M3 has, ties to even, found by looking at all.
func plainlyEncoded(b branches, a arm) fidelity {
	half, channels := b.tokens()/2, b.channels
	z := b.plain()
	past, present := z[:half*channels], z[half*channels:]
	up := b.up[half*channels:]
	// What a value is multiplied by before it is quantized.
	smooth := func(at int) float64 { return 1 }
	switch a.name {
	case channelNow:
		amax := channelAmax(up, channels)
		smooth = func(at int) float64 { return math.Exp2(-math.Floor(math.Log2(amax[at%channels]))) }
	case tokenNow:
		smooth = func(at int) float64 {
			first := at / channels * channels
			return math.Exp2(-math.Floor(math.Log2(largestMagnitude(up[first : first+channels]))))
		}
	}
	smoothed := make([]float32, len(present))
	for at, v := range present {
		smoothed[at] = float32(float64(v) * smooth(at))
	}
	ofTensor := 448 / float32(largestMagnitude(smoothed))
	if a.timing != justInTime {
		ofTensor = 448 / float32(largestMagnitude(past))
	}
	var f fidelity
	var signal, noise float64
	for at, v := range smoothed {
		factor := ofTensor
		if a.name == blocksNow {
			row, column := at/channels*channels, at%channels
			block := smoothed[row+column/128*128 : row+min(column/128*128+128, channels)]
			factor = 448 / float32(largestMagnitude(block))
		}
		scaled := math.Abs(float64(v * factor))
		nearest := nearestE4M3(scaled)
		if scaled >= 464 {
			f.saturated += 1 / float64(len(present))
		}
		if v != 0 && nearest == 0 {
			f.flushed += 1 / float64(len(present))
		}
		left := nearest * float64(1/factor) / smooth(at)
		signal += math.Pow(float64(present[at]), 2)
		noise += math.Pow(math.Abs(float64(present[at]))-left, 2)
	}
	f.input = math.Sqrt(noise / signal)
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
