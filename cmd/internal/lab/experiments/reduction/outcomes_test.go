package reduction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/labtest"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
)

// madeUp is a report on worlds and teams whose figures are given.
func madeUp(t *testing.T, figures func(w *world), loss func(w way) float64) *report.Report {
	t.Helper()
	r := &study{scope: scope{worlds: []int{2, 64}, steps: 12, team: 8, teamSteps: 4}, o: labtest.Short()}
	var err error
	r.run, err = r.newRun("made up")
	require.NoError(t, err)
	for _, k := range kinds {
		for _, size := range r.scope.worlds {
			for _, w := range ways() {
				world := newWorld(k, size, w, 1)
				figures(world)
				r.worlds = append(r.worlds, world)
			}
		}
	}
	for _, w := range teamWays {
		l := loss(w)
		r.teams = append(r.teams, &team{way: w, losses: []float64{l}, last: l})
	}
	return r.report()
}

// TestSentencesFollow feeds the report with figures of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	opposite := madeUp(t, func(w *world) {
		w.factor = 1
		if w.way == pre {
			w.err = 0.5
		}
	}, func(w way) float64 {
		if w.fp8 {
			return 3
		}
		return 2
	})
	as := madeUp(t, func(w *world) {
		w.err, w.factor = 0.5, 1
		switch {
		case w.way == pre:
			w.err = 0.3
		case w.way == auto && w.kind.name == alike.name:
			w.factor = 0.5
		}
	}, func(way) float64 { return 2 })
	labtest.Outcomes(t, opposite, as)
	labtest.NotSaid(t, opposite, "which overflows, costs more", "No division saves", "The more gradients agree", "All ways train about as well", "sums do not fit a scale that is made for values", "sums fit but for", "is no smaller than it must be")
}
