package swiglu_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// refused calls f, which must return an error or panic with a constant of this
// package.
func refused(t *testing.T, name string, f func() error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			text, ok := p.(string)
			require.True(t, ok && strings.HasPrefix(text, "swiglu: "), "%s: panics with %v", name, p)
		}
	}()
	require.Error(t, f(), name)
}

// TestMisuseTable throws what is wrong at every function that can be given it.
func TestMisuseTable(t *testing.T) {
	four, three := make([]float32, 4), make([]float32, 3)
	bad := []swiglu.Scales{
		{Axis: 2}, {Axis: 9, Values: four[:2]}, {Values: three}, {Axis: swiglu.PerToken, Values: three},
		{Values: []float32{}}, {Axis: swiglu.PerToken, Values: []float32{}},
	}
	none := func(f func()) func() error { return func() error { f(); return nil } }
	for _, s := range bad {
		refused(t, "Forward", none(func() { swiglu.Forward(four, four, four, s) }))
		refused(t, "Backward", none(func() { swiglu.Backward(four, make([]float32, 4), four, four, four, s) }))
		refused(t, "FoldUp", none(func() { swiglu.FoldUp(four, four, s) }))
		if s.Axis != swiglu.PerToken {
			refused(t, "FoldDown", none(func() { swiglu.FoldDown(four, four, s) }))
		}
		if s.Axis != swiglu.PerChannel {
			refused(t, "Unscale", none(func() { swiglu.Unscale(four, s) }))
		}
	}
	refused(t, "Forward", none(func() { swiglu.Forward(four, three, four, swiglu.Scales{}) }))
	refused(t, "Backward", none(func() { swiglu.Backward(four, three, four, four, four, swiglu.Scales{}) }))
	refused(t, "FoldDown", none(func() { swiglu.FoldDown(three, four, swiglu.Scales{}) }))
	refused(t, "FoldUp", none(func() { swiglu.FoldUp(four, four, swiglu.Scales{}) }))
	for _, rows := range [][2]int{{-1, 1}, {1, 0}, {0, 4}, {math.MaxInt, math.MinInt}} {
		refused(t, "Tokens", none(func() { swiglu.Scales{Axis: swiglu.PerToken, Values: three}.Tokens(rows[0], rows[1]) }))
	}
	refused(t, "Tokens", none(func() { swiglu.Scales{Axis: 3}.Tokens(0, 1) }))
	for _, channels := range []int{0, -1, 3, math.MinInt} {
		refused(t, "Smoother.Scales", none(func() { new(swiglu.Smoother).Scales(four, channels) }))
	}
	for _, c := range []swiglu.Smoothing{{Axis: 2}, {Delay: -1}, {Delay: math.MaxInt}} {
		s := swiglu.Smoother{Smoothing: c}
		require.ErrorIs(t, c.Check(), swiglu.ErrSmoothing)
		refused(t, "Smoother.Scales", none(func() { s.Scales(four, 2) }))
		refused(t, "Smoother.Restore", func() error { return s.Restore(swiglu.State{Version: 1}) })
		refused(t, "Smoother.SetAmaxes", func() error { return s.SetAmaxes(swiglu.Amaxes{Version: 1}) })
		s.Update()
		s.State()
		s.Amaxes()
	}
	changed := swiglu.Smoother{Smoothing: swiglu.Smoothing{Delay: 2}}
	changed.Scales(four, 2)
	changed.Smoothing.Delay = -5
	changed.Update()

	negative := []scaling.Float{1, -1}
	refused(t, "Merge", func() error { _, err := swiglu.Merge(swiglu.State{Version: 7}); return err })
	require.ErrorIs(t, swiglu.State{Version: 7}.Check(), swiglu.ErrVersion)
	require.ErrorIs(t, swiglu.State{Version: 1, Current: negative}.Check(), swiglu.ErrState)
	require.ErrorIs(t, swiglu.Amaxes{Version: 7}.Check(), swiglu.ErrVersion)
	for _, a := range []swiglu.Amaxes{{Version: 1, Axis: 2}, {Version: 1, Amax: negative}} {
		require.ErrorIs(t, a.Check(), swiglu.ErrState)
		_, err := swiglu.MergeAmaxes(a)
		require.ErrorIs(t, err, swiglu.ErrState)
		_, err = a.MarshalBinary()
		require.ErrorIs(t, err, swiglu.ErrState)
	}
	var axis swiglu.Axis
	require.ErrorIs(t, axis.UnmarshalText([]byte("across")), swiglu.ErrSmoothing)
	_, err := swiglu.Axis(2).MarshalText()
	require.ErrorIs(t, err, swiglu.ErrSmoothing)
	require.Equal(t, "Axis(2)", swiglu.Axis(2).String())
	text, err := json.Marshal([]swiglu.Axis{swiglu.PerChannel, swiglu.PerToken})
	require.NoError(t, err)
	require.JSONEq(t, `["per-channel","per-token"]`, string(text))
}

// TestCanonicalNaN checks that every NaN is the canonical one at every level, whatever
// gave it: the issue's own case first.
func TestCanonicalNaN(t *testing.T) {
	f := math.Float32frombits
	values := []float32{f(0x43E00000), f(0xFFC00000), f(0x7F812345), f(0x7F800000), f(0xFF800000), 0, f(0x80000000), f(0x00800000), f(0xFF812345), -1}
	for _, level := range cpu.Levels() {
		restore, err := cpu.Force(level)
		require.NoError(t, err)
		defer restore()
		for _, n := range []int{1, 19} { // less than a vector, and more
			for _, u := range values {
				for _, g := range values {
					for _, dz := range values {
						s := swiglu.Scales{Axis: swiglu.PerToken, Values: []float32{f(0x00800000)}}
						z, du, dg := repeated(0, n), repeated(0, n), repeated(0, n)
						swiglu.Forward(z, repeated(u, n), repeated(g, n), s)
						swiglu.Backward(du, dg, repeated(dz, n), repeated(u, n), repeated(g, n), s)
						y, w, v := repeated(dz, n), repeated(0, n), repeated(0, n)
						s.Values[0] = u
						swiglu.Unscale(y, s)
						perChannel := swiglu.Scales{Values: s.Values}
						swiglu.FoldDown(w, repeated(g, n), perChannel)
						swiglu.FoldUp(v, repeated(g, n), perChannel)
						for _, results := range [][]float32{z, du, dg, y, w, v} {
							for i, x := range results {
								if x != x && math.Float32bits(x) != 0x7FC00000 {
									t.Fatalf("level %v, u %v, g %v, dz %v: element %d is %08x", level, u, g, dz, i, math.Float32bits(x))
								}
							}
						}
					}
				}
			}
		}
	}
}

func repeated(x float32, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = x
	}
	return s
}

// TestAmaxesEqualMerge runs smoothers that exchange what they recorded in every step,
// and smoothers that exchange whole states.
func TestAmaxesEqualMerge(t *testing.T) {
	for _, axis := range []swiglu.Axis{swiglu.PerChannel, swiglu.PerToken} {
		smoothing := swiglu.Smoothing{Axis: axis, Delay: 3}
		light, full := make([]swiglu.Smoother, 3), make([]swiglu.Smoother, 3)
		for step := range 8 {
			amaxes, states := make([]swiglu.Amaxes, 3), make([]swiglu.State, 3)
			for w := range light {
				light[w].Smoothing, full[w].Smoothing = smoothing, smoothing
				u := []float32{float32(step * w), -3, float32(w) / 7, 0, 1, float32(step)}
				if w == 1 {
					u = append(u, 9, float32(math.Inf(1))) // more tokens
					if step%3 == 0 {
						u[2] = float32(math.NaN())
					}
				}
				if w != 2 || step%2 == 0 {
					light[w].Scales(u, 2)
					full[w].Scales(u, 2)
				}
				amaxes[w], states[w] = light[w].Amaxes(), full[w].State()
				data, err := amaxes[w].MarshalBinary()
				require.NoError(t, err)
				require.Less(t, len(data), 16+4*len(amaxes[w].Amax))
				amaxes[w] = swiglu.Amaxes{}
				require.NoError(t, amaxes[w].UnmarshalBinary(data))
			}
			maxima, err := swiglu.MergeAmaxes(amaxes...)
			require.NoError(t, err)
			back, err := swiglu.MergeAmaxes(amaxes[2], amaxes[1], amaxes[0], amaxes[1])
			require.NoError(t, err)
			require.Equal(t, text(t, maxima), text(t, back))
			state, err := swiglu.Merge(states...)
			require.NoError(t, err)
			for w := range light {
				require.NoError(t, light[w].SetAmaxes(maxima))
				require.NoError(t, full[w].Restore(state))
				light[w].Update()
				full[w].Update()
				require.Equal(t, text(t, full[w].State()), text(t, light[w].State()), "%v, step %d", axis, step)
			}
		}
	}
	a := swiglu.Amaxes{Version: 1, Amax: []scaling.Float{1, 2}}
	b := swiglu.Amaxes{Version: 1, Amax: []scaling.Float{1}}
	_, err := swiglu.MergeAmaxes(a, b)
	require.ErrorIs(t, err, swiglu.ErrState)
	b.Axis = swiglu.PerToken
	_, err = swiglu.MergeAmaxes(a, b)
	require.ErrorIs(t, err, swiglu.ErrState)
	require.ErrorIs(t, new(swiglu.Smoother).SetAmaxes(b), swiglu.ErrState)

	data, err := a.MarshalBinary()
	require.NoError(t, err)
	for n := range data {
		c := swiglu.Amaxes{Axis: 1}
		require.Error(t, c.UnmarshalBinary(data[:n]))
		require.Equal(t, swiglu.Amaxes{Axis: 1}, c)
	}
	require.ErrorIs(t, a.UnmarshalBinary(append(data, 1)), swiglu.ErrState)
	require.ErrorIs(t, a.UnmarshalBinary([]byte{5}), swiglu.ErrVersion)
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// TestEmptyAmaxes checks that a step without amaxes evicts no step before it.
func TestEmptyAmaxes(t *testing.T) {
	s := swiglu.Smoother{Smoothing: swiglu.Smoothing{Delay: 1}}
	s.Scales([]float32{1, 8}, 2)
	s.Update()
	before := s.State()
	require.NoError(t, s.SetAmaxes(swiglu.Amaxes{Version: 1, Amax: []scaling.Float{}}))
	s.Update()
	require.Equal(t, before, s.State())

	err := swiglu.Amaxes{Version: 1, Axis: 2}.Check()
	require.EqualError(t, err, "swiglu: unknown axis of smoothing 2: want one of per-channel, per-token")
}
