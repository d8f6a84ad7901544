package law

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/training"
)

// given is a sweep with a loss for each run; the held-out loss is its negative.
func given(t *testing.T, loss func(seed int, a arm) float64) *sweep {
	t.Helper()
	s, err := newSweep(rhymes(lab.Look))
	require.NoError(t, err)
	for i := range s.jobs {
		l := loss(i/len(s.arms), s.arms[i%len(s.arms)])
		s.curves = append(s.curves, training.Curve{Losses: []float64{l}, HeldOut: -l})
	}
	return s
}

// madeUp is a report on a sweep with a loss for each arm, and published laws that change has
// changed.
func madeUp(t *testing.T, loss func(a arm) float64, change func(*published)) *report.Report {
	t.Helper()
	p, err := newPublished()
	require.NoError(t, err)
	change(&p)
	r, err := newReport(p, given(t, func(_ int, a arm) float64 { return loss(a) }))
	require.NoError(t, err)
	return r
}

// TestSentencesFollow feeds the report with losses of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	size := func(a arm) float64 { return float64(a.pays) / 32 } // the larger the better
	as := madeUp(t, func(a arm) float64 {
		switch {
		case a.half:
			return size(a) * 1.1
		case a.name == fp4:
			return 0.45
		case a.name == fp4Forward:
			return 0.4
		}
		return size(a)
	}, func(*published) {})
	opposite := madeUp(t, func(a arm) float64 {
		switch {
		case a.half:
			return size(a) * 3
		case a.name == bf16:
			return 2
		case a.name == fp4:
			return 0.2
		case a.name == fp4Forward:
			return 0.14
		case a.once:
			return -size(a)
		}
		return size(a)
	}, func(p *published) {
		p.sun, p.tooFew = p.kumar, nil
		for i := range p.optima {
			p.optima[i].sun, p.optima[i].kumar = 5, float64(i)
		}
	})
	best := madeUp(t, size, func(*published) {})
	labtest.Outcomes(t, opposite, as, best)
	labtest.NotSaid(t, opposite, "The two laws disagree", "Sun's wants more bits", "Kumar's does not.", "Of 3 bits it says")
}
