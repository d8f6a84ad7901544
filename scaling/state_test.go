package scaling_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/scaling"
)

func delayed(length int) scaling.Recipe {
	return scaling.Recipe{Profile: scaling.TEDelayed, Delayed: scaling.Delayed{Length: length}}
}

// history gets the history of a name, which must be right.
func history(t testing.TB, hs *scaling.Histories, name string, length int) *scaling.History {
	t.Helper()
	h, err := hs.Get(name, delayed(length))
	require.NoError(t, err)
	return h
}

// filled returns histories of the given names that have seen every kind of amax.
func filled(t testing.TB, r *rand.Rand, steps, length int, names ...string) *scaling.Histories {
	hs := new(scaling.Histories)
	for range steps {
		for _, name := range names {
			history(t, hs, name, length).Observe(0, anyAmax(r))
		}
		hs.Update()
	}
	for _, name := range names {
		history(t, hs, name, length).Observe(0, anyAmax(r))
	}
	return hs
}

// oneBlock is the saved history of a whole tensor.
type oneBlock scaling.BlockState

// state returns the state of histories of whole tensors in E4M3.
func state(step int64, blocks map[string]oneBlock) scaling.State {
	s := scaling.State{Version: 2, Step: step, Histories: map[string]scaling.HistoryState{}}
	for name, b := range blocks {
		s.Histories[name] = b.history()
	}
	return s
}

func (b oneBlock) history() scaling.HistoryState {
	return scaling.HistoryState{Grid: [2]int{1, 1}, Blocks: []scaling.BlockState{scaling.BlockState(b)}}
}

// bitwise is a state as text that shows every bit but those of a NaN.
func bitwise(s scaling.State) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestStateJSON saves a state as JSON, restores it, and goes on with both.
func TestStateJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, length := range []int{1, 2, 5, 100} {
		a := filled(t, r, 2*length+3, length, "q", "k", "layers.0/ü\"\n")
		text, err := json.Marshal(a.State())
		require.NoError(t, err)
		var s scaling.State
		require.NoError(t, json.Unmarshal(text, &s))
		require.Equal(t, a.State(), s)

		var b scaling.Histories
		require.NoError(t, b.Restore(s))
		require.Equal(t, a.Step(), b.Step())
		for range 2 * length {
			for name := range s.Histories {
				amax := anyAmax(r)
				x, y := history(t, a, name, length), history(t, &b, name, length)
				require.Equal(t, x.Scale(0), y.Scale(0))
				x.Observe(0, amax)
				y.Observe(0, amax)
			}
			a.Update()
			b.Update()
			require.Equal(t, a.State(), b.State())
		}
	}
}

// TestStateText is what a saved state looks like: NaN and infinities are
// strings, every float32 is written so that it comes back to the bit.
func TestStateText(t *testing.T) {
	const text = `{"version":2,"step":7,"histories":{"w":{"format":"E4M3","block":"tensor","grid":[1,1],"blocks":[{"scale":0.1,"current":"NaN","past":["+Inf",1e-45,0,3.4028235e+38,0.33333334]}]}}}`
	var s scaling.State
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	w := s.Histories["w"].Blocks[0]
	require.Equal(t, float32(0.1), float32(w.Scale))
	require.True(t, w.Current != w.Current)
	require.Equal(t, []scaling.Float{scaling.Float(math.Inf(1)), math.SmallestNonzeroFloat32, 0, math.MaxFloat32, 1.0 / 3}, w.Past)
	require.Equal(t, text, bitwise(s))
	var hs scaling.Histories
	require.NoError(t, hs.Restore(s))
	require.Equal(t, text, bitwise(hs.State()))
	history(t, &hs, "w", 6)
	require.Equal(t, text, bitwise(hs.State()))

	history(t, &hs, "one", 1)
	require.Contains(t, bitwise(hs.State()), `"one":{"format":"E4M3","block":"tensor","grid":[1,1],"blocks":[{"scale":1,"current":0,"past":[]}]}`)
}

func TestFloatJSON(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 100000 {
		want := math.Float32frombits(r.Uint32())
		text, err := scaling.Float(want).MarshalJSON()
		var got scaling.Float
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil || math.Float32bits(want) != math.Float32bits(float32(got)) && want == want || want != want && got == got {
			t.Fatalf("%v (%08x) is written %s and read %v, %v", want, math.Float32bits(want), text, got, err)
		}
	}
	for _, text := range []string{`"x"`, `""`, `true`, `1e39`, `{}`, `[1]`, `null`} {
		got := scaling.Float(5)
		require.EqualError(t, json.Unmarshal([]byte(text), &got), "scaling: "+text+" is not a float32")
		require.Equal(t, scaling.Float(5), got)
	}
}

// TestRestoreLength restores into shorter and longer histories.
func TestRestoreLength(t *testing.T) {
	saved := state(0, map[string]oneBlock{"x": {Scale: 2, Current: 9, Past: []scaling.Float{5, 4, 3, 2, 1}}})
	for length, want := range map[int][]scaling.Float{
		1: {}, 2: {5}, 4: {5, 4, 3}, 6: {5, 4, 3, 2, 1}, 9: {5, 4, 3, 2, 1, 0, 0, 0},
	} {
		var hs scaling.Histories
		require.NoError(t, hs.Restore(saved))
		h := history(t, &hs, "x", length)
		require.Equal(t, float32(2), h.Scale(0).Multiplier)
		require.Equal(t, oneBlock{Scale: 2, Current: 9, Past: want}.history(), hs.State().Histories["x"])
		hs.Update()
		require.Equal(t, 448/float32(9), h.Scale(0).Multiplier)
		// The 9 counts until it has dropped out.
		for range length - 1 {
			h.Observe(0, 0.5)
			hs.Update()
		}
		require.Equal(t, 448/float32(9), h.Scale(0).Multiplier)
		h.Observe(0, 0.5)
		hs.Update()
		require.Equal(t, 448/float32(0.5), h.Scale(0).Multiplier)
	}
}

// TestRestoreRefuses checks every kind of bad state, and that it changes nothing.
func TestRestoreRefuses(t *testing.T) {
	inf, nan := scaling.Float(math.Inf(1)), scaling.Float(math.NaN())
	good := func() scaling.State {
		return state(3, map[string]oneBlock{
			"a": {Scale: 1, Past: []scaling.Float{1, inf, nan}},
			"b": {Scale: 1, Current: nan, Past: []scaling.Float{1, 2}},
		})
	}
	require.NoError(t, good().Check())
	cases := map[string]func(s *scaling.State){
		"scaling: state of version 0: want 2": func(s *scaling.State) { s.Version = 0 },
		"scaling: state of version 1: want 2": func(s *scaling.State) { s.Version = 1 },
		"scaling: state of step -1":           func(s *scaling.State) { s.Step = -1 },
		`scaling: state of "b": amax of 0 steps ago is -1: want no negative number`: func(s *scaling.State) {
			s.Histories["b"] = oneBlock{Scale: 1, Current: -1}.history()
		},
		`scaling: state of "b": amax of 2 steps ago is -Inf: want no negative number`: func(s *scaling.State) {
			s.Histories["b"].Blocks[0].Past[1] = -inf
		},
		`scaling: state of "a": amax of 1 steps ago is -2: want no negative number`: func(s *scaling.State) {
			s.Histories["a"].Blocks[0].Past[0], s.Histories["b"].Blocks[0].Past[0] = -2, -3
		},
	}
	for _, scale := range []scaling.Float{0, -1, nan, inf, -inf, scaling.Float(math.Copysign(0, -1))} {
		cases[fmt.Sprintf(`scaling: state of "a": scale %v: want a finite number above 0`, scale)] = func(s *scaling.State) {
			s.Histories["a"] = oneBlock{Scale: scale}.history()
		}
	}
	for want, change := range cases {
		bad := good()
		change(&bad)
		hs := filled(t, rand.New(rand.NewPCG(3, 3)), 4, 3, "a", "z")
		before, a := hs.State(), history(t, hs, "a", 3)
		require.EqualError(t, hs.Restore(bad), want)
		require.Equal(t, before, hs.State())
		require.Same(t, a, history(t, hs, "a", 3))
		_, err := scaling.Merge(good(), bad)
		require.EqualError(t, err, "worker 1: "+want)
	}
}

// TestUnclaimed checks that histories which nobody has asked for yet are saved
// again, are not aliased, and make way for what is claimed.
func TestUnclaimed(t *testing.T) {
	s := filled(t, rand.New(rand.NewPCG(4, 4)), 5, 4, "a", "b").State()
	want := bitwise(s)
	var hs scaling.Histories
	require.NoError(t, hs.Restore(s))
	for name := range s.Histories {
		s.Histories[name].Blocks[0].Past[0] = 77
	}
	require.Equal(t, want, bitwise(hs.State()))
	out := hs.State()
	out.Histories["a"].Blocks[0].Past[1] = 78
	delete(out.Histories, "b")
	require.Equal(t, want, bitwise(hs.State()))

	hs.Update() // of no history
	h := history(t, &hs, "a", 4)
	h.Observe(0, 30)
	hs.Update()
	got := hs.State()
	require.Len(t, got.Histories, 2)
	require.Equal(t, scaling.Float(30), got.Histories["a"].Blocks[0].Past[0])
	require.Equal(t, got.Step, s.Step+2)

}

// TestRestoreInPlace checks that histories which were handed out before go on
// from the restored state, and from nothing where it lacks them.
func TestRestoreInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	s := filled(t, r, 5, 4, "a", "b").State()
	hs := filled(t, r, 9, 6, "a", "c")
	a, c := history(t, hs, "a", 6), history(t, hs, "c", 6)
	require.NoError(t, hs.Restore(s))
	require.Same(t, a, history(t, hs, "a", 6))
	require.Equal(t, s.Step, hs.Step())
	require.Equal(t, float32(s.Histories["a"].Blocks[0].Scale), a.Scale(0).Multiplier)
	require.Equal(t, float32(1), c.Scale(0).Multiplier)

	var fresh scaling.Histories
	require.NoError(t, fresh.Restore(s))
	history(t, &fresh, "a", 6)
	history(t, &fresh, "c", 6)
	require.Equal(t, bitwise(fresh.State()), bitwise(hs.State()))
	require.Len(t, hs.State().Histories, 3)

	require.NoError(t, hs.Restore(scaling.State{Version: 2}))
	for name, h := range hs.State().Histories {
		require.Equal(t, oneBlock{Scale: 1, Past: make([]scaling.Float, 5)}.history(), h, name)
	}
	require.Len(t, hs.State().Histories, 2)
}

// TestOtherVersions refuses states that this package does not know.
func TestOtherVersions(t *testing.T) {
	var s scaling.State
	for _, version := range []int{0, 1, 3, -1} {
		err := json.Unmarshal(fmt.Appendf(nil, `{"version":%d,"anything":[]}`, version), &s)
		require.ErrorIs(t, err, scaling.ErrVersion)
		require.EqualError(t, err, fmt.Sprintf("scaling: saved state of version %d: this package reads version 2", version))
	}
	for _, text := range []string{`{"version":2,"histories":{"w":{"scales":[1]}}}`, `{"version":2,"stop":1}`, `{"version":2,"histories":{"w":{"format":"E9M9"}}}`, `[]`} {
		require.Error(t, json.Unmarshal([]byte(text), &s), text)
	}
}
