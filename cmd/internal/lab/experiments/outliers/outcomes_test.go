package outliers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/lab"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/labtest"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
	"github.com/octavo-fp8/octavo/cmd/internal/trial"
)

// madeUp is a report on figures that bear out the claim, but for what change does to them.
func madeUp(t *testing.T, change func(s *study)) *report.Report {
	t.Helper()
	s := &study{options: lab.Options{Length: lab.Short}, plan: newPlan(lab.Options{Length: lab.Short}), setup: training.Setup{Batch: 1, Seq: 8}}
	var err error
	s.base, err = trial.New("FP32", training.Llama(s.plan.dim, s.plan.layers, 8), 1)
	require.NoError(t, err)
	s.natural = []naturalFigures{{step: 1, cosine: 0.5, cosineTop: 0.9, amax: 10, median: 1}}
	s.aligned = []float64{1.1}
	s.losses = baseLosses{2, 2, 2}
	for gain := 1.0; gain <= 16; gain *= 2 {
		s.law = append(s.law, gainFigures{gain, []float64{gain * gain, gain, gain}})
	}
	for _, c := range jumpCases() {
		j := jumpFigures{name: c.name}
		for _, gain := range jumpGains {
			j.at = append(j.at, jumpPoint{gain: gain, loss: 2})
		}
		s.jumps = append(s.jumps, j)
	}
	s.runs = continuations(s.plan)
	for i, r := range s.runs {
		for range s.plan.steps() {
			r.steps = append(r.steps, stepFigures{loss: 2, heldOut: 2, amax: 1, limit: 1})
		}
		late := &r.steps[s.plan.window]
		switch i {
		case delayedRun:
			*late = stepFigures{heldOut: 2.1, amax: 9, limit: 1, saturated: 0.1}
			r.steps[2*s.plan.window].flushed = 0.1
		case tokenRun:
			late.flushed = 0.1
		}
	}
	s.runs[fp32Run].steps[s.plan.steps()-1].heldOut = 2.02
	f := realFigures{name: "layer 0", amax: 10, median: 1, halves: 1, channels: []float64{10, 1}}
	for i := range realSchemes() {
		f.asIs = append(f.asIs, fidelity{sqnr: 32})
		f.grown = append(f.grown, fidelity{sqnr: 30})
		if i == 0 {
			f.grown[0].sqnr = 1
		}
	}
	s.real = []realFigures{f}
	change(s)
	return s.report()
}

// TestSentencesFollow feeds the report with figures of one outcome and of the opposite.
func TestSentencesFollow(t *testing.T) {
	opposite := madeUp(t, func(s *study) {
		s.aligned = []float64{10}
		for i := range s.law {
			s.law[i].amax = []float64{1, s.law[i].gain * s.law[i].gain, s.law[i].gain * s.law[i].gain}
		}
		for i, r := range s.runs {
			for step := range r.steps {
				r.steps[step] = stepFigures{heldOut: 2, amax: 1, limit: 1, flushed: 0.2}
				if i != fp32Run && i != delayedRun {
					r.steps[step] = stepFigures{heldOut: 2.1, amax: 9, limit: 1, saturated: 0.1, flushed: 0.1}
				}
			}
		}
		s.real[0].asIs[0].sqnr = 10
	})
	as := func(*study) {}
	calm := func(s *study) {
		for _, r := range s.runs[everyStepRun:] {
			r.steps[2].amax = 3
		}
	}
	labtest.Outcomes(t, madeUp(t, as), madeUp(t, calm), opposite)
	require.Contains(t, labtest.Sentences(madeUp(t, as)), "it is the window that makes the delayed run fail")
	failing := madeUp(t, func(s *study) { s.runs[everyStepRun].steps[s.plan.window+1].heldOut = 3 })
	require.Contains(t, labtest.Sentences(failing), "the window is not what makes")
	require.Contains(t, labtest.Sentences(opposite), "nothing can be said of the window")
	labtest.NotSaid(t, opposite, "it is the window that makes", "not that they are aligned", "What it cuts off costs more",
		"all channels share a token's scale", "one scale for the tensor is enough", "makes growth linear", "all ways are about alike", "Training alone aligns", "the outliers disturb FP32 too")
}
