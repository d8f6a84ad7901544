package reduction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
)

// madeUp is a report on worlds and teams whose figures are given.
func madeUp(t *testing.T, figures func(w *world)) *report.Report {
	t.Helper()
	s := &study{scope: scope{seeds: 2, worlds: []int{few, 64}, steps: 3, adapted: 1, team: 8, teamSteps: 4}}
	for range s.seeds {
		of := &sample{scope: s.scope, o: labtest.Short()}
		var err error
		of.run, err = of.newRun("made up")
		require.NoError(t, err)
		for _, k := range kinds {
			for _, size := range s.scope.worlds {
				for _, w := range ways() {
					world := newWorld(k, size, w, 1)
					world.saturated = []float64{0}
					figures(world)
					of.worlds = append(of.worlds, world)
				}
			}
		}
		for _, k := range teamKinds {
			of.teams = append(of.teams, &team{kind: k, losses: []float64{2}})
		}
		s.samples = append(s.samples, of)
	}
	return s.report()
}

// TestSentencesFollow: what came out states figures of the seeds, and what became of goals.
func TestSentencesFollow(t *testing.T) {
	r := madeUp(t, func(w *world) {
		w.err, w.factor = 0.25, 1
		if w.way == post {
			w.err = 0.5
		}
	})
	for _, f := range r.Findings {
		require.Empty(t, f.Follows)
	}
	require.Contains(t, labtest.Sentences(r), "off by +25 (+25 to +25) percent")
	require.NotContains(t, labtest.Sentences(r), "not judged", "said once, of all")
}

// TestGoalsTakeTheRightFigures gives each way a figure of its own.
func TestGoalsTakeTheRightFigures(t *testing.T) {
	r := madeUp(t, func(w *world) {
		if !w.way.fp8 || w.size != 64 || w.kind.name != sequences.name {
			w.err = 7
			return
		}
		w.encode.Elements, w.sum.Elements = 1000, 1000
		w.encode.Flushed = map[way]int64{post: 2, pre: 128, root: 16, auto: 32}[w.way]
		w.err = map[way]float64{post: 0.4, pre: 0.2, root: 0.3, auto: 0.1}[w.way]
		if at, ok := map[way][]float64{post: {0.5}, auto: {0.9, 0.25}}[w.way]; ok {
			w.saturated = at
		}
	})
	want := map[string]float64{
		"post-overflows": 50, "auto-overflows": 25, "auto-underflows": 0.25,
		"auto-error-pre": 0.5, "auto-error-post": 0.25, "dense-pre": 64, "dense-root": 8,
		"independent": 7 / independentError(few), "loss-auto": 0, "alike-post": 700,
	}
	for _, g := range r.Goals {
		if x, ok := want[g.Name]; ok {
			require.InEpsilon(t, x+1, float64(g.Found.Mean)+1, 1e-12, g.Name)
			delete(want, g.Name)
		}
	}
	require.Empty(t, want)
}
