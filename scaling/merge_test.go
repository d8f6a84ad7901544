package scaling_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/scaling"
)

func merge(t testing.TB, states ...scaling.State) scaling.State {
	t.Helper()
	merged, err := scaling.Merge(states...)
	require.NoError(t, err)
	require.NoError(t, merged.Check())
	return merged
}

func TestMerge(t *testing.T) {
	nan, inf := scaling.Float(math.NaN()), scaling.Float(math.Inf(1))
	a := state(5, map[string]oneBlock{
		"both":   {Scale: 2, Current: 1, Past: []scaling.Float{5, 0, nan, 1, inf, nan}},
		"first":  {Scale: 7, Current: 3, Past: []scaling.Float{9}},
		"longer": {Scale: 1, Current: nan, Past: []scaling.Float{1, 2, 3, 4}},
	})
	b := state(6, map[string]oneBlock{
		"both":   {Scale: 0.5, Current: 4, Past: []scaling.Float{1, 2, 3, nan, 3, inf}},
		"longer": {Scale: 3, Current: 2, Past: []scaling.Float{2}},
		"second": {Scale: 8, Current: inf},
	})
	want := state(6, map[string]oneBlock{
		"both":   {Scale: 0.5, Current: 4, Past: []scaling.Float{5, 2, nan, nan, inf, nan}},
		"first":  {Scale: 7, Current: 3, Past: []scaling.Float{9}},
		"longer": {Scale: 1, Current: nan, Past: []scaling.Float{2, 2, 3, 4}},
		"second": {Scale: 8, Current: inf, Past: []scaling.Float{}},
	})
	beforeA, beforeB := bitwise(a), bitwise(b)
	got := merge(t, a, b)
	require.Equal(t, bitwise(want), bitwise(got))
	got.Histories["first"].Blocks[0].Past[0]++
	got.Histories["both"].Blocks[0].Past[0]++
	require.Equal(t, beforeA, bitwise(a), "an argument has changed")
	require.Equal(t, beforeB, bitwise(b), "an argument has changed")

	require.Equal(t, `{"version":2,"step":0,"histories":{}}`, bitwise(merge(t)))
	require.Equal(t, bitwise(a), bitwise(merge(t, a)))
}

// TestMergeLaws checks that Merge is commutative, associative and idempotent.
func TestMergeLaws(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random := func() scaling.State {
		s := scaling.State{Version: 2, Step: r.Int64N(10), Histories: map[string]scaling.HistoryState{}}
		for _, name := range []string{"a", "b", "c"} {
			if r.IntN(4) == 0 {
				continue
			}
			h := oneBlock{Scale: scaling.Float(edgeAmax(r)), Current: scaling.Float(anyAmax(r)), Past: []scaling.Float{}}
			for range r.IntN(5) {
				h.Past = append(h.Past, scaling.Float(anyAmax(r)))
			}
			s.Histories[name] = h.history()
		}
		return s
	}
	for range 500 {
		a, b, c := random(), random(), random()
		all := bitwise(merge(t, a, b, c))
		for _, same := range []scaling.State{
			merge(t, b, c, a), merge(t, c, b, a), merge(t, merge(t, a, b), c), merge(t, a, merge(t, b, c)),
			merge(t, a, b, c, a, c, b, b), merge(t, merge(t, a, b, c), a),
		} {
			require.Equal(t, all, bitwise(same))
		}
		require.Equal(t, bitwise(a), bitwise(merge(t, a)))
		require.Equal(t, bitwise(a), bitwise(merge(t, a, a, a)))
	}
}

// TestMergeEveryStep merges the states of workers before every update, as an
// all-reduce does: they are then that of a single worker who saw everything,
// whatever was observed.
func TestMergeEveryStep(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, recipe := range mergeRecipes() {
		var single scaling.Histories
		workers := make([]scaling.Histories, 3)
		for step := range 40 {
			states := make([]scaling.State, len(workers))
			for w := range workers {
				for _, name := range []string{"a", "b"} {
					h, err := workers[w].Get(name, recipe)
					require.NoError(t, err)
					one, err := single.Get(name, recipe)
					require.NoError(t, err)
					if r.IntN(3) > 0 {
						amax := anyAmax(r)
						h.Observe(0, amax)
						one.Observe(0, amax)
					}
				}
				states[w] = workers[w].State()
			}
			merged := merge(t, states...)
			single.Update()
			for w := range workers {
				require.NoError(t, workers[w].Restore(merged))
				workers[w].Update()
				require.Equal(t, bitwise(single.State()), bitwise(workers[w].State()), "%+v, step %d", recipe, step)
			}
		}
	}
}

// TestMergeOnce merges workers at the end: they are a single worker if all of
// them saw something finite in every step.
func TestMergeOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, recipe := range mergeRecipes() {
		var single scaling.Histories
		workers := make([]scaling.Histories, 3)
		states := make([]scaling.State, len(workers))
		for range 20 {
			for w := range workers {
				h, err := workers[w].Get("a", recipe)
				require.NoError(t, err)
				one, err := single.Get("a", recipe)
				require.NoError(t, err)
				amax := edgeAmax(r)
				h.Observe(0, amax)
				one.Observe(0, amax)
				workers[w].Update()
				states[w] = workers[w].State()
			}
			single.Update()
			require.Equal(t, bitwise(single.State()), bitwise(merge(t, states...)), "%+v", recipe)
		}
	}
}

func mergeRecipes() (all []scaling.Recipe) {
	for _, length := range []int{1, 2, 7} {
		for _, algorithm := range []scaling.AmaxAlgorithm{scaling.AmaxMax, scaling.AmaxMostRecent} {
			all = append(all, scaling.Recipe{Profile: scaling.TEDelayed,
				Delayed: scaling.Delayed{Length: length, Margin: 1, Algorithm: algorithm}})
		}
	}
	return all
}
