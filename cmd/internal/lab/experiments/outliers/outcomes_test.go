package outliers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/labtest"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
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

// TestSentencesFollow feeds the report with figures of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	as := madeUp(t, outcome{
		top: 0.9, free: 0.8,
		errors: map[string]float64{plainLate: 0.3, channelLate: 0.4, blocksLate: 0.5, channelFresh: 0.1, blocksNow: 0.005},
		losses: map[string]float64{plainLate: 0.1}, trained: 0.3,
	})
	opposite := madeUp(t, outcome{top: 0.1, free: 0.15, errors: map[string]float64{channelFresh: 0.1, blocksNow: 0.02}})
	labtest.Outcomes(t, as, opposite)
	require.Contains(t, labtest.Sentences(as), "smoothing that looks at the present tensor helps")
	labtest.NotSaid(t, opposite, "align without weight decay too", "are aligned more.", "loses the outliers", "looks at the present tensor", "better only where", "loses less than a late one", "late scales diverges")
}
