package train

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
)

// TestWatchGoesOn: a watch that was kept at any moment raises the alarms of one that was not.
func TestWatchGoesOn(t *testing.T) {
	rules := []Rule{
		{Steps: 3, Action: ActionRewind},
		{Series: SeriesSaturated, Window: 5, Least: 2, Steps: 2},
		{Series: SeriesAmax, Least: 3},
		{Series: SeriesRanks, Steps: 2},
	}
	step := func(w *Watch, i int) []Alarm {
		loss, ranks := noise(i), []float64{1, 1.01, 0.99, 1}
		stats := fp8.Stats{SaturatedPos: int64(i % 3), Amax: 1 + 0.1*math.Sin(float64(i))}
		if i%11 > 7 {
			loss, stats.SaturatedPos, stats.Amax = math.Inf(1), 300, 50
			ranks[2] = math.NaN()
		}
		w.Observe(SeriesLoss, int64(i), loss)
		require.NoError(t, w.Event(lost(int64(i), "a", stats)))
		require.NoError(t, w.Event(lost(int64(i), "b", fp8.Stats{Amax: stats.Amax * stats.Amax})))
		w.ObserveRanks("norm", int64(i), ranks)
		return w.Alarms()
	}
	const steps = 60
	for cut := range steps {
		whole, first, second := Watch{Rules: rules}, Watch{Rules: rules}, Watch{Rules: rules}
		alarms := 0
		for i := range steps {
			on := &first
			if i >= cut {
				on = &second
			}
			if i == cut {
				text, err := json.Marshal(&first)
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(text, &second))
			}
			want := step(&whole, i)
			got := step(on, i)
			require.Len(t, got, len(want))
			for k := range want { // NaN is not equal to itself
				require.Equal(t, math.Float64bits(want[k].Value), math.Float64bits(got[k].Value))
				require.Equal(t, [5]any{want[k].Rule, want[k].First, want[k].Step, want[k].Tensor, want[k].Median},
					[5]any{got[k].Rule, got[k].First, got[k].Step, got[k].Tensor, got[k].Median})
			}
			alarms += len(want)
		}
		require.Greater(t, alarms, 10)
	}
}

func TestWatchStateRefused(t *testing.T) {
	w := Watch{Rules: []Rule{{Window: 2}}}
	w.Observe(SeriesLoss, 0, 1)
	before, err := json.Marshal(&w)
	require.NoError(t, err)
	for text, says := range map[string]string{
		`{"version":2}`:                                      "a watch of version 2: this package reads version 1",
		`{"version":1,"series":[{"rule":1}]}`:                "remembers rule 1: there are 1",
		`{"version":1,"series":[{"rule":-1}]}`:               "remembers rule -1",
		`{"version":1,"series":[{"rule":0,"past":[1,2,3]}]}`: `3 values of "", , and 0 steps in a row`,
		`{"version":1,"series":[{"rule":0,"row":-1}]}`:       "-1 steps in a row",
		`{"version":1,"series":[{"rule":0,"past":["NaN"]}]}`: "cannot unmarshal",
		`{"version":1,"series":[{"rule":0,"past":[1e999]}]}`: "cannot unmarshal",
	} {
		require.ErrorContains(t, json.Unmarshal([]byte(text), &w), says)
	}
	after, err := json.Marshal(&w)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
