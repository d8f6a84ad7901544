package outliers

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
)

const (
	// lossAllowed is the gap in loss, in percent, that DeepSeek-V3 reports for training in
	// FP8; a run that loses twice as much fails.
	lossAllowed = 0.25
	lossFailed  = 2 * lossAllowed

	// signalOfE4M3 is about what rounding to E4M3 leaves, in decibels: an error of at most
	// half of 2^-3 in a significand, uniform, so 2^-6/12 on average in the square, of a
	// significand that is spread evenly on a logarithmic scale, 3/(2 ln 2) in the square.
	signalOfE4M3 = 32.2

	// signalLost is, in decibels, an error of a third of the amplitude.
	signalLost = 10
)

// rescued are the runs that are to do without the loss of the delayed one.
var rescued = []int{channelRun, tokenRun, currentRun, blockRun}

func (s *study) report() *report.Report {
	return &report.Report{
		Goals:    slices.Concat(s.lawGoals(), s.runGoals(), s.realGoals()),
		Findings: slices.Concat(s.lawFindings(), s.runFindings(), s.realFindings()),
		Limits:   s.limits(),
		Charts: []chart.Chart{
			s.heldOutChart(), s.trainingChart(), s.amaxChart(), s.reachChart(), s.saturatedChart(),
			s.lawChart(), s.jumpChart(), s.channelChart(), s.signalChart(),
		},
		Tables: []report.Table{s.runTable(), s.jumpTable(), s.naturalTable(), s.lawTable(), s.realTable(), s.curveTable()},
	}
}

func (s *study) lawGoals() []report.Goal {
	random := cosineAtRandom(s.plan.dim)
	last := s.lastNatural()
	got, met := "", true
	for _, n := range last {
		got += fmt.Sprintf("layer %d: %.2f and %.2f; ", n.layer, n.cosineTop, n.cosine)
		met = met && n.cosineTop > n.cosine && n.cosine > random
	}
	goals := []report.Goal{report.NewGoal(
		"Branches after training alone: median |cosine| of the twentieth of the neurons with the largest gain, and of all",
		fmt.Sprintf("the first larger, and both above %.2f, that of random directions", random),
		got[:max(len(got)-2, 0)], met).AtLength()}
	for i, how := range smoothings {
		want, name := 1.0, "Smooth-SwiGLU "+how.name
		if how.way == nil {
			want, name = 2, "plain SwiGLU"
		}
		power := slope(s.law, i)
		goals = append(goals, report.NewGoal(
			"Power of the gain that the largest |z| of aligned neurons grows with, "+name,
			fmt.Sprintf("%.0f within 0.05", want), fmt.Sprintf("%.3f", power), math.Abs(power-want) < 0.05).AtLength())
	}
	return goals
}

// grows reports whether a measured power is the one that theory has.
func grows(power, theory float64) bool { return math.Abs(power-theory) < 0.05 }

func (s *study) lastNatural() []naturalFigures {
	return s.natural[len(s.natural)-s.plan.layers:]
}

// room is how much larger than the amax before a value may be under a margin.
const room = 1 << lateMargin

func (s *study) runGoals() []report.Goal {
	fp32, delayed := s.runs[fp32Run], s.runs[delayedRun]
	square := grownGain * grownGain / float64(room)
	reach := delayed.largest(anyStep, stepFigures.reach)
	saturated := delayed.largest(anyStep, saturatedOf)
	lost := delayed.largestGap(fp32, s.plan.late)
	goals := []report.Goal{
		report.NewGoal("Delayed: largest input of a down projection over what its scale can hold",
			fmt.Sprintf("%d² / 2^%d = %.1f within a factor of 2", grownGain, lateMargin, square),
			fmt.Sprintf("%.2f", reach), reach > square/2 && reach < square*2).AtLength(),
		report.NewGoal("Delayed: largest gap in held-out loss over FP32 while the scale is late",
			fmt.Sprintf("above %.2g %%, twice what FP8 training is allowed", lossFailed),
			fmt.Sprintf("%+.2f %%", lost), lost > lossFailed).AtLength(),
	}
	for _, i := range rescued {
		r := s.runs[i]
		share := r.largest(anyStep, saturatedOf)
		saturates := report.NewGoal(
			"Largest saturated share of a down projection's input: "+r.name,
			fmt.Sprintf("at most a hundredth of the delayed run's %.2g %%", 100*saturated),
			report.Percent(share), share <= saturated/100)
		gap := r.largestGap(fp32, s.plan.late)
		loses := report.NewGoal(
			"Largest gap in held-out loss over FP32 while a delayed scale is late: "+r.name,
			fmt.Sprintf("at most %.2f %%", lossAllowed), fmt.Sprintf("%+.2f %%", gap), gap <= lossAllowed)
		if r.window > 0 { // its scales are late, and made for what grows in the full run
			saturates, loses = saturates.AtLength(), loses.AtLength()
		}
		goals = append(goals, saturates, loses)
	}
	return goals
}

func (s *study) realGoals() []report.Goal {
	names, worst := "", math.Inf(1)
	lost, kept := math.Inf(-1), math.Inf(1)
	for _, f := range s.real {
		for i, e := range f.asIs {
			if e.sqnr < worst {
				names, worst = f.name+", "+realSchemes()[i].name, e.sqnr
			}
		}
		lost = max(lost, f.grown[0].sqnr)
		for _, e := range f.grown[1:] {
			kept = min(kept, e.sqnr)
		}
	}
	const short = 3
	goals := []report.Goal{
		report.NewGoal("Activations "+s.whose()+", as they are: lowest signal to noise of all layers and ways",
			fmt.Sprintf("%v dB, that of rounding to E4M3, or at most %d less", signalOfE4M3, short),
			fmt.Sprintf("%.1f dB (%s)", worst, names), worst > signalOfE4M3-short),
		report.NewGoal(fmt.Sprintf("The same, the gain of one channel grown to %d since the scale: highest of all layers, plain and delayed", grownGain),
			fmt.Sprintf("below %d dB", signalLost), fmt.Sprintf("%.1f dB", lost), lost < signalLost),
		report.NewGoal("The same, smoothed or just in time: lowest of all layers",
			fmt.Sprintf("above %d dB", signalLost), fmt.Sprintf("%.1f dB", kept), kept > signalLost),
	}
	if s.options.Activations == nil { // those of a model that a short run hardly trains have no channel that stands out
		goals[1], goals[2] = goals[1].AtLength(), goals[2].AtLength()
	}
	return goals
}

// whose are the activations that were looked at.
func (s *study) whose() string {
	if s.options.Activations != nil {
		return "of --activations"
	}
	return "of the model trained here"
}

func (s *study) limits() []string {
	lines := []string{
		fmt.Sprintf("The outliers are made by hand: in Fishman et al. they come by themselves after 200 billion tokens of a model of 7 billion parameters, here from an intervention in one of %s. %d of %d neurons of each layer are aligned, and their gains grow %d-fold in %d steps, their columns of the down projection shrinking with the square.",
			s.where(), s.plan.neurons, s.base.Model.Config().Hidden, grownGain, s.plan.growth),
		fmt.Sprintf("The delayed runs refresh their scales once in a window of %d steps, as Fishman et al. do; weights are scaled just in time, since their rows grow too. The margin of 2^%d is chosen to lie between the gain and its square, where by theory Smooth-SwiGLU holds and plain SwiGLU does not; the table of jumps has other choices.",
			s.plan.window, lateMargin),
		"All runs go on at a hundredth of the largest learning rate and with fresh moments of the optimizer, from one seed.",
	}
	if s.options.Activations == nil {
		lines = append(lines, "--activations was not given: the last part uses the model that was trained here.")
	}
	return lines
}

// jumpGap is by how many percent the loss of a case is above that of FP32.
func (s *study) jumpGap(index, gain int) float64 {
	return 100 * (s.jumps[index].at[gain].loss/s.jumps[0].at[gain].loss - 1)
}
