package law

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/labtest"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
)

// madeUp is a report on a sweep with a loss for each width, and published laws that change
// has changed.
func madeUp(t *testing.T, losses []float64, change func(*published)) *report.Report {
	t.Helper()
	p, err := newPublished()
	require.NoError(t, err)
	change(&p)
	s, err := newSweep(labtest.Short())
	require.NoError(t, err)
	for i := range s.jobs {
		s.curves = append(s.curves, training.Curve{Losses: []float64{losses[i%len(losses)]}})
	}
	return newReport(p, s)
}

// TestSentencesFollow feeds the report with losses of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	opposite := madeUp(t, []float64{1, 2, 3, 4, 5}, func(p *published) {
		p.sun, p.tooFew = p.kumar, nil
		for i := range p.optima {
			p.optima[i].sun, p.optima[i].kumar = 5, float64(i)
		}
	})
	labtest.Outcomes(t, opposite, madeUp(t, []float64{5, 4, 3, 2, 3}, func(*published) {}))
	labtest.NotSaid(t, opposite, "The two laws disagree", "Sun's wants more bits", "Kumar's does not.", "the larger model wins", "Of 3 bits it says", "every model is far from")
}
