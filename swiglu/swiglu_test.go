package swiglu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

const tokens, channels = 24, 40

// branches returns random u and g; channel 7 of u is an outlier, channel 9 and
// token 5 are zero.
func branches(seed uint64) (u, g []float32) {
	r := rand.New(rand.NewPCG(seed, 1))
	u, g = make([]float32, tokens*channels), make([]float32, tokens*channels)
	for i := range u {
		u[i], g[i] = float32(r.NormFloat64()), float32(r.NormFloat64()*2)
		switch {
		case i%channels == 9 || i/channels == 5:
			u[i] = 0
		case i%channels == 7:
			u[i] *= 300
		}
	}
	return u, g
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

// every kind of smoothing, and none.
func smoothings(u []float32) map[string]swiglu.Scales {
	all := map[string]swiglu.Scales{"plain": {}}
	for name, c := range map[string]swiglu.Smoothing{
		"channel":       {},
		"token":         {Axis: swiglu.PerToken},
		"channel exact": {Exact: true},
		"token exact":   {Axis: swiglu.PerToken, Exact: true},
	} {
		s := swiglu.Smoother{Smoothing: c}
		all[name] = s.Scales(u, channels)
	}
	return all
}

func scaleOf(s swiglu.Scales, i int) float64 {
	switch {
	case s.Values == nil:
		return 1
	case s.Axis == swiglu.PerToken:
		return float64(s.Values[i/channels])
	}
	return float64(s.Values[i%channels])
}

func TestForward(t *testing.T) {
	u, g := branches(1)
	for name, s := range smoothings(u) {
		z := make([]float32, len(u))
		swiglu.Forward(z, u, g, s)
		for i := range z {
			want := scaleOf(s, i) * float64(u[i]) * silu(float64(g[i]))
			if math.Abs(float64(z[i])-want) > 2e-7*math.Abs(want) {
				t.Fatalf("%s: z[%d] = %v, want %v", name, i, z[i], want)
			}
		}
	}
}

// TestBackward compares with the derivative of the definition in float64.
func TestBackward(t *testing.T) {
	u, g := branches(2)
	dz, _ := branches(3)
	const h = 1e-6
	for name, s := range smoothings(u) {
		du, dg := make([]float32, len(u)), make([]float32, len(u))
		swiglu.Backward(du, dg, dz, u, g, s)
		for i := range u {
			scale, x, y, d := scaleOf(s, i), float64(u[i]), float64(g[i]), float64(dz[i])
			wantU := d * scale * silu(y)
			wantG := d * scale * x * (silu(y+h) - silu(y-h)) / (2 * h)
			if math.Abs(float64(du[i])-wantU) > 1e-6*math.Abs(wantU) ||
				math.Abs(float64(dg[i])-wantG) > 1e-6*math.Abs(wantG)+1e-8*math.Abs(d*scale*x) {
				t.Fatalf("%s: element %d: du = %v, want %v; dg = %v, want %v", name, i, du[i], wantU, dg[i], wantG)
			}
		}
	}
}

func TestAliasing(t *testing.T) {
	u, g := branches(4)
	dz, _ := branches(5)
	s := smoothings(u)["channel"]
	z := make([]float32, len(u))
	swiglu.Forward(z, u, g, s)
	du, dg := make([]float32, len(u)), make([]float32, len(u))
	swiglu.Backward(du, dg, dz, u, g, s)

	inPlace := append([]float32(nil), u...)
	swiglu.Forward(inPlace, inPlace, g, s)
	require.Equal(t, z, inPlace)
	a, b := append([]float32(nil), u...), append([]float32(nil), g...)
	swiglu.Backward(a, b, dz, a, b, s)
	require.Equal(t, du, a)
	require.Equal(t, dg, b)
}

func TestScale(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct{ amax, pow2, exact float32 }{
		{0, 1, 1},
		{inf, 1, 1},
		{float32(math.NaN()), 1, 1},
		{1, 1, 1},
		{1.999, 1, 1 / float32(1.999)},
		{2, 0.5, 0.5},
		{300, 1.0 / 256, 1 / float32(300)},
		{0.3, 4, 1 / float32(0.3)},
		{math.MaxFloat32, 0x1p-126, 1 / float32(math.MaxFloat32)},
		{math.SmallestNonzeroFloat32, 0x1p126, math.MaxFloat32},
	} {
		require.Equal(t, c.pow2, swiglu.Smoothing{}.Scale(c.amax), "amax %v", c.amax)
		require.Equal(t, c.exact, swiglu.Smoothing{Exact: true}.Scale(c.amax), "amax %v", c.amax)
	}
}

func TestScalesAreOfTheirAxis(t *testing.T) {
	u := []float32{
		1, -40, 0,
		-3, 2, 0,
	}
	var channel swiglu.Smoother
	require.Equal(t, []float32{0.5, 1.0 / 32, 1}, channel.Scales(u, 3).Values)
	token := swiglu.Smoother{Smoothing: swiglu.Smoothing{Axis: swiglu.PerToken}}
	require.Equal(t, []float32{1.0 / 32, 0.5}, token.Scales(u, 3).Values)
}

func TestDelayed(t *testing.T) {
	s := swiglu.Smoother{Smoothing: swiglu.Smoothing{Delay: 2}}
	scales := func(u ...float32) []float32 { return s.Scales(u, len(u)).Values }
	require.Equal(t, []float32{0.25, 1}, scales(4, 1), "no history: just in time")
	require.Equal(t, []float32{1, 0.125}, scales(1, 8), "the step has not ended")
	s.Update() // 4 8
	require.Equal(t, []float32{0.25, 0.125}, scales(64, 64))
	s.Update() // 64 64, 4 8
	require.Equal(t, []float32{1.0 / 64, 1.0 / 64}, scales(1, 2))
	s.Update() // 1 2, 64 64
	require.Equal(t, []float32{1.0 / 64, 1.0 / 64}, scales(1, 1))
	s.Update() // 1 1, 1 2
	require.Equal(t, []float32{1, 0.5, 1.0 / 32}, scales(1, 1, 32), "a third channel has no history")
	s.Update()
	s.Update() // nothing recorded: nothing moves
	require.Equal(t, []float32{1, 1, 1.0 / 32}, scales(1, 1, 1))
}

func TestState(t *testing.T) {
	a := swiglu.Smoother{Smoothing: swiglu.Smoothing{Delay: 3}}
	for step := range 4 {
		u, _ := branches(uint64(step))
		a.Scales(u, channels)
		a.Update()
	}
	nan := []float32{float32(math.NaN()), 1}
	a.Scales(nan, 2)
	state := a.State()

	b := swiglu.Smoother{Smoothing: swiglu.Smoothing{Delay: 3}}
	require.NoError(t, b.Restore(state))
	a.Update()
	b.Update()
	u, _ := branches(9)
	require.Equal(t, a.Scales(u, channels), b.Scales(u, channels))

	shorter := swiglu.Smoother{Smoothing: swiglu.Smoothing{Delay: 1}}
	require.NoError(t, shorter.Restore(state))
	require.Len(t, shorter.State().Past, 1)

	require.ErrorContains(t, b.Restore(swiglu.State{Version: 2}), "version 2")
	state.Past[1][4] = -1
	require.ErrorContains(t, b.Restore(state), "amax 4 of 2 steps ago is -1")
}

func TestMisuse(t *testing.T) {
	x := make([]float32, 6)
	scales := swiglu.Scales{Values: make([]float32, 4)}
	require.PanicsWithValue(t, "swiglu: slices are not of the same length", func() { swiglu.Forward(x, x, x[:5], swiglu.Scales{}) })
	require.PanicsWithValue(t, "swiglu: slices are not of the same length", func() { swiglu.Backward(x, x, x, x, x[:5], swiglu.Scales{}) })
	require.PanicsWithValue(t, "swiglu: scales do not divide the elements into rows", func() { swiglu.Forward(x, x, x, scales) })
	require.PanicsWithValue(t, "swiglu: scales do not divide the elements into rows", func() { swiglu.FoldUp(x, x, swiglu.Scales{}) })
	require.PanicsWithValue(t, "swiglu: slices are not of the same length", func() { new(swiglu.Smoother).Scales(x, 4) })
}

func TestMerge(t *testing.T) {
	nan := float32(math.NaN())
	state := func(steps ...[]float32) swiglu.State {
		s := swiglu.Smoother{Smoothing: swiglu.Smoothing{Delay: 3}}
		for i, u := range steps {
			s.Scales(u, len(u))
			if i < len(steps)-1 {
				s.Update()
			}
		}
		return s.State()
	}
	a := state([]float32{1, 2}, []float32{3, 4}, []float32{5, 6})
	b := state([]float32{9, 1}, []float32{nan, 8, 7})
	for _, merge := range [][]swiglu.State{{a, b}, {b, a}, {a, b, a}} {
		m, err := swiglu.Merge(merge...)
		require.NoError(t, err)
		require.Equal(t, []string{"NaN", "8", "7"}, texts(m.Current))
		require.Equal(t, []string{"9", "4"}, texts(m.Past[0]))
		require.Equal(t, []string{"1", "2"}, texts(m.Past[1]))
	}
	b.Version = 7
	_, err := swiglu.Merge(a, b)
	require.ErrorContains(t, err, "worker 1: swiglu: state of version 7")
	wrong := swiglu.Smoother{Smoothing: swiglu.Smoothing{Delay: -1}}
	require.ErrorContains(t, wrong.Restore(a), "delay of -1 steps")
}

func texts(values []scaling.Float) (t []string) {
	for _, v := range values {
		t = append(t, fmt.Sprint(v))
	}
	return t
}
