package runs

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/scaling"
)

// TestBest: a run is named the best where its loss is the least of runs of one text, size and number
// of steps, and lower in each part of the last steps; otherwise it is said why none is.
func TestBest(t *testing.T) {
	long := func() *comparison.Result { return trained(100, 100, 1, scaling.TEBlock) }
	times := func(r *comparison.Result, by float64) *comparison.Result {
		for i := range r.Points {
			r.Points[i].FP8.Loss *= by
		}
		r.FP8.Loss, r.FP8.HeldOut = r.FP8.Loss*by, r.FP8.HeldOut*by
		return r
	}
	with := func(r *comparison.Result, change func(*comparison.Result)) *comparison.Result {
		change(r)
		return r
	}
	const of = "Of a, b, which have the same text, size and steps, b has the least "
	for name, c := range map[string]struct {
		a, b      *comparison.Result
		best, say string
	}{
		"told apart": {long(), times(long(), 0.98), "b", of + "held-out loss in FP8, 2.0054: a, the next, has 2.0463."},
		"other rate": {long(), with(times(long(), 0.98), func(r *comparison.Result) { r.Options.LearningRate = 0.1 }), "b", of},
		"not lower in one part": {long(), with(times(long(), 0.98), func(r *comparison.Result) {
			r.Points[99].FP8.Loss, r.Points[98].FP8.Loss = 9, 9
		}), "", of + "held-out loss in FP8, 2.0054, but is not told apart from a, 2.0463: of 8 parts of the last 10 steps its loss is lower in 7."},
		"too few steps": {trained(70, 70, 1, scaling.TEBlock), times(trained(70, 70, 1, scaling.TEBlock), 0.98), "", ": that needs 71 steps."},
		"other seeds":   {long(), times(trained(100, 100, 2, scaling.TEBlock), 0.98), "", "they have other batches, by --seed."},
		"the same":      {long(), long(), "", "Of a, b, which have the same text, size and steps, a has the least held-out loss in FP8, 2.0463, but is not told apart from b, 2.0463: their losses are the same."},
		"not held out":  {with(long(), func(r *comparison.Result) { r.FP8.HeldOut = 0 }), times(long(), 0.98), "b", of + "final loss in FP8, "},
		"other size":    {long(), with(times(long(), 0.98), func(r *comparison.Result) { r.Options.Dim = 16 }), "", "No run is named the best: no two have the same text, size and steps. They differ in dim."},
		"mixture":       {long(), with(times(long(), 0.98), func(r *comparison.Result) { r.Options.MoE = true }), "", "They differ in model."},
		"stopped":       {long(), times(trained(90, 100, 1, scaling.TEBlock), 0.98), "", "They differ in number of steps."},
		"none learned":  {times(long(), 9), times(long(), 8), "", "No run is named the best: the run with the least held-out loss in FP8, b, has not learned."},
		"not finite":    {times(long(), math.NaN()), times(long(), math.NaN()), "", "has not learned."},
	} {
		for _, r := range []*comparison.Result{c.a, c.b} { // all began alike
			r.Points[0].FP32.Loss, r.Points[0].FP8.Loss = 5, 5
		}
		dir := t.TempDir()
		writeTrain(t, filepath.Join(dir, "a"), c.a)
		writeTrain(t, filepath.Join(dir, "b"), c.b)
		s := read(t, dir)
		f := s.finding()
		require.Equal(t, c.best, f.Best, name)
		require.Contains(t, f.Text, c.say, name)
		require.True(t, strings.HasPrefix(strings.Join(strings.Fields(textOf(t, s)), " "), f.Text), name)
		require.Contains(t, pageOf(t, s, dir), "</h2>\n<p><strong>"+f.Text, name)
		var out strings.Builder
		require.NoError(t, s.WriteJSON(&out))
		var j struct{ Best, Finding string }
		require.NoError(t, json.Unmarshal([]byte(out.String()), &j))
		require.Equal(t, f, finding{j.Best, j.Finding}, name)
		require.Equal(t, name == "mixture", strings.Contains(out.String(), `"model": "moe"`))
		require.NotContains(t, textOf(t, s), "not known", name)
		require.Equal(t, name == "mixture", strings.Contains(textOf(t, s), "llama"), name)
	}
}

// TestFailed: a run whose FP32 has not learned has no gap, whatever octavo wrote it.
func TestFailed(t *testing.T) {
	failed := func(data string) Train {
		r, err := parseResult([]byte(`{"version":1,"options":{"steps":40},"stepsDone":40,"fp32":{` + data + `,"heldOutLoss":7.5,"seconds":1},
			"fp8":{"firstLoss":5.5,"finalLoss":5,"heldOutLoss":4,"seconds":1},"gapPercent":-51.4,"heldOutGapPercent":-43}`))
		require.NoError(t, err)
		return r
	}
	rose, fell, unsaid := failed(`"firstLoss":5.5,"finalLoss":10.25`), failed(`"firstLoss":5.5,"finalLoss":4`), failed(`"finalLoss":10.25`)
	require.True(t, math.IsNaN(rose.Gap) && math.IsNaN(rose.HeldOutGap))
	require.Equal(t, -51.4, fell.Gap)
	require.Equal(t, -51.4, unsaid.Gap)
	rose.Name, fell.Name = "rose", "fell"
	s := &Set{Train: []Train{rose, fell}}
	const says = "FP32 has not learned, its loss rose: rose. There a gap is no figure of the format."
	require.Contains(t, s.Notes(), says)
	s.Sort(ByGap)
	require.Equal(t, "fell", s.Train[0].Name)
	s.Train = s.Train[:1]
	require.NotContains(t, s.Notes(), says)
}
