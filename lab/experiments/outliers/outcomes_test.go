package outliers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
)

// outcome is what a report is made up of.
type outcome struct {
	top, free float64 // |cosine| with weight decay and without
	errors    map[string]float64
	losses    map[string]float64
	trained   float64 // loss of all runs above FP32
}

func madeUp(t *testing.T, o outcome) *report.Report {
	t.Helper()
	s := &study{options: lab.Options{Length: lab.Short}, plan: newPlan(lab.Options{Length: lab.Short})}
	for range 2 {
		var f seedFigures
		for look := range looks + 1 {
			f.decayed = append(f.decayed, alignment{step: look, cosineTop: o.top, cosine: 0.3, amax: 9, rms: 1})
			f.free = append(f.free, alignment{step: look, cosineTop: o.free, cosine: 0.3, amax: 9, rms: 1})
		}
		found := make([]fidelity, len(arms()))
		for i, a := range arms() {
			found[i].output = 0.01
			if e := o.errors[a.name]; e > 0 {
				found[i].output = e
			}
		}
		c := course{heldOut: []float64{2}, arms: [][]fidelity{found}}
		for range 2 * s.plan.window {
			c.amax = append(c.amax, []float64{5})
		}
		for _, a := range lossArms() {
			c.under = append(c.under, []float64{2 + o.losses[a.name]})
			if a.trained {
				f.runs = append(f.runs, course{name: a.name, heldOut: []float64{2 + o.trained}})
			}
		}
		f.growing, f.calm = c, c
		s.seeds = append(s.seeds, f)
	}
	return s.report()
}

// TestSentencesFollow: what came out states figures of the seeds, and what became of goals.
func TestSentencesFollow(t *testing.T) {
	r := madeUp(t, outcome{
		top: 0.9, free: 0.8,
		errors: map[string]float64{plainLate: 0.32, channelLate: 0.64, blocksLate: 0.5, channelFresh: 0.08, blocksNow: 0.005},
		losses: map[string]float64{plainLate: 0.1}, trained: 0.3,
	})
	for _, f := range r.Findings {
		require.Empty(t, f.Follows)
	}
	said := labtest.Sentences(r)
	require.Contains(t, said, "is 0.90 (0.90 to 0.90) with weight decay")
	require.Contains(t, said, "has 2.00 (2.00 to 2.00) times the error of plain SwiGLU where both are late")
	require.Contains(t, said, "it has 0.25 (0.25 to 0.25) times that of plain")
	require.Contains(t, said, "changes the held-out loss by +5.00 % (+5.00 to +5.00)")
	require.NotContains(t, labtest.Sentences(r), "not judged", "said once, of all")
}
