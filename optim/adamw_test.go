package optim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/nn"
)

// adamW is the algorithm of the paper in float64, for one value.
func adamW(value float64, gradients []float64, lr, decay float64) float64 {
	const beta1, beta2, eps = 0.9, 0.95, 1e-8
	var m, v float64
	for i, g := range gradients {
		t := float64(i + 1)
		m = beta1*m + (1-beta1)*g
		v = beta2*v + (1-beta2)*g*g
		mHat, vHat := m/(1-math.Pow(beta1, t)), v/(1-math.Pow(beta2, t))
		value -= lr * (mHat/(math.Sqrt(vHat)+eps) + decay*value)
	}
	return value
}

func TestAdamWFollowsThePaper(t *testing.T) {
	gradients := []float64{0.5, -0.25, 3, 0.125, 0, -1}
	matrix, gain := zeros("matrix", 1, 1), ones("gain", 1)
	matrix.Value[0] = 2
	optimizer := AdamW{WeightDecay: 0.1}
	for _, g := range gradients {
		matrix.Grad[0], gain.Grad[0] = float32(g), float32(-g)
		norm, err := optimizer.Step(t.Context(), []*nn.Param{matrix, gain}, 0.01)
		require.NoError(t, err)
		require.InDelta(t, math.Sqrt(2)*math.Abs(g), norm, 1e-12)
	}
	require.InDelta(t, adamW(2, gradients, 0.01, 0.1), matrix.Value[0], 1e-6)
	for i := range gradients {
		gradients[i] *= -1
	}
	require.InDelta(t, adamW(1, gradients, 0.01, 0), gain.Value[0], 1e-6, "vectors do not decay")
}

// TestClipScalesAllGradients relies on a large Eps, without which Adam hardly
// minds the scale of a gradient.
func TestClipScalesAllGradients(t *testing.T) {
	step := func(clip, scale float32) float32 {
		a, b := zeros("a", 1, 1), zeros("b", 1, 1)
		a.Grad[0], b.Grad[0] = 3*scale, 4*scale
		optimizer := AdamW{Clip: float64(clip), Eps: 1}
		norm, err := optimizer.Step(t.Context(), []*nn.Param{a, b}, 1)
		require.NoError(t, err)
		require.InDelta(t, 5*scale, norm, 1e-6)
		require.Equal(t, 4*scale, b.Grad[0], "gradients are not changed")
		return b.Value[0]
	}
	require.Equal(t, step(0, 0.5), step(2.5, 1), "clipped to half")
	require.Equal(t, step(0, 1), step(6, 1), "within the limit")
}

func TestAdamWRefuses(t *testing.T) {
	p := zeros("p", 1, 2)
	params := []*nn.Param{p}
	var optimizer AdamW
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		p.Grad[1] = bad
		_, err := optimizer.Step(t.Context(), params, 1)
		require.ErrorContains(t, err, "must be finite")
		require.Equal(t, []float32{0, 0}, p.Value)
	}
	p.Grad[1] = 1
	_, err := optimizer.Step(t.Context(), params, math.NaN())
	require.ErrorContains(t, err, "learning rate is NaN")
	_, err = (&AdamW{Beta2: 1}).Step(t.Context(), params, 1)
	require.ErrorContains(t, err, "AdamW.Beta2 is 1")

	_, err = optimizer.Step(t.Context(), params, 1)
	require.NoError(t, err)
	_, err = optimizer.Step(t.Context(), nil, 1)
	require.ErrorContains(t, err, "0 parameters: it had 1")
	_, err = optimizer.Step(t.Context(), []*nn.Param{zeros("q", 3, 1)}, 1)
	require.ErrorContains(t, err, "q of 3 elements: it had 2")
}

func TestSchedule(t *testing.T) {
	s := Schedule{Peak: 2, Final: 0.1, Warmup: 4, Steps: 24}
	for step, want := range map[int]float64{0: 0.5, 3: 2, 4: 2, 14: 1.1, 24: 0.2, 99: 0.2} {
		require.InDelta(t, want, s.At(step), 1e-15, "step %d", step)
	}
	for step := 4; step < 24; step++ {
		require.Less(t, s.At(step+1), s.At(step))
	}
	require.Equal(t, 3.0, Schedule{Peak: 3}.At(1000), "constant without Steps")
}

func TestAdamWRefusesWhatFP32CannotHold(t *testing.T) {
	p := zeros("w", 1, 2)
	p.Grad[0] = 1e20
	o := AdamW{}
	_, err := o.Step(t.Context(), []*nn.Param{p}, 0.1)
	require.ErrorContains(t, err, "set AdamW.Clip")
	require.Equal(t, []float32{0, 0}, p.Value)
	o.Clip = 1
	_, err = o.Step(t.Context(), []*nn.Param{p}, 0.1)
	require.NoError(t, err)

	tiny := AdamW{Eps: 1e-60}
	_, err = tiny.Step(t.Context(), []*nn.Param{p}, 0.1)
	require.ErrorContains(t, err, "AdamW.Eps is 1e-60")
}

// zeros is a matrix of zeros.
func zeros(name string, rows, cols int) *nn.Param {
	p, err := nn.NewParam(name, rows, cols)
	if err != nil {
		panic(err)
	}
	return p
}

// ones is a vector of ones, without weight decay.
func ones(name string, n int) *nn.Param {
	p := zeros(name, 1, n)
	p.Decay = false
	for i := range p.Value {
		p.Value[i] = 1
	}
	return p
}

// randoms returns n normal numbers that depend on the stream only.
func randoms(stream uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = random.Normal(99, stream, uint64(i))
	}
	return x
}
