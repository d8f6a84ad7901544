package outliers

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
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
		"Training alone aligns branches, those of the largest gain most: median |cosine| of the twentieth of the neurons with the largest gain, and of all",
		fmt.Sprintf("falling, and above %.2f, that of random directions", random),
		got[:max(len(got)-2, 0)], met)}
	for i, how := range smoothings {
		want, name := 1.0, "Smooth-SwiGLU "+how.name
		if how.way == nil {
			want, name = 2, "plain SwiGLU"
		}
		power := slope(s.law, i)
		goals = append(goals, report.NewGoal(
			"Power of the gain that the largest |z| of aligned neurons grows with, "+name,
			fmt.Sprintf("%.0f within 0.05", want), fmt.Sprintf("%.3f", power), math.Abs(power-want) < 0.05))
	}
	return goals
}

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
			fmt.Sprintf("%.2f", reach), reach > square/2 && reach < square*2),
		report.NewGoal("Delayed: largest gap in held-out loss over FP32 while the scale is late",
			fmt.Sprintf("above %.2g %%, twice what FP8 training is allowed", lossFailed),
			fmt.Sprintf("%+.2f %%", lost), lost > lossFailed),
	}
	for _, i := range rescued {
		r := s.runs[i]
		share := r.largest(anyStep, saturatedOf)
		goals = append(goals, report.NewGoal(
			"Largest saturated share of a down projection's input: "+r.name,
			fmt.Sprintf("at most a hundredth of the delayed run's %.2g %%", 100*saturated),
			report.Percent(share), share <= saturated/100))
		gap := r.largestGap(fp32, s.plan.late)
		goals = append(goals, report.NewGoal(
			"Largest gap in held-out loss over FP32 while a delayed scale is late: "+r.name,
			fmt.Sprintf("at most %.2f %%", lossAllowed), fmt.Sprintf("%+.2f %%", gap), gap <= lossAllowed))
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
	return []report.Goal{
		report.NewGoal("Activations "+s.whose()+", as they are: lowest signal to noise of all layers and ways",
			fmt.Sprintf("%v dB, that of rounding to E4M3, or at most %d less", signalOfE4M3, short),
			fmt.Sprintf("%.1f dB (%s)", worst, names), worst > signalOfE4M3-short),
		report.NewGoal(fmt.Sprintf("The same, the gain of one channel grown to %d since the scale: highest of all layers, plain and delayed", grownGain),
			fmt.Sprintf("below %d dB", signalLost), fmt.Sprintf("%.1f dB", lost), lost < signalLost),
		report.NewGoal("The same, smoothed or just in time: lowest of all layers",
			fmt.Sprintf("above %d dB", signalLost), fmt.Sprintf("%.1f dB", kept), kept > signalLost),
	}
}

// whose are the activations that were looked at.
func (s *study) whose() string {
	if s.options.Activations != nil {
		return "of --activations"
	}
	return "of the model trained here"
}

func (s *study) lawFindings() []string {
	var top, typical float64
	for _, n := range s.lastNatural() {
		if n.amax > top {
			top, typical = n.amax, n.median
		}
	}
	before := func(step int) bool { return step > 1 && step < s.plan.window }
	return []string{
		fmt.Sprintf("As trained, the model's largest |z| is %.3g, %.0f times the median. Such values come in every Batch: until gains grow, a scale without margin from the steps before is exceeded by a factor of %.2f at most.",
			top, top/typical, s.runs[everyStepRun].largest(before, stepFigures.reach)),
		fmt.Sprintf("To align the %d neurons of each layer that matter most, and make them equally large, costs %+.2f %% of held-out loss, %+.2f %% after %d more steps. Aligning alone changes their largest |z| by a factor of %.2f (median), since training had gone most of the way; what makes them outliers is the gain, the length of both rows.",
			s.plan.neurons, 100*(s.losses.aligned/s.losses.trained-1), 100*(s.losses.healed/s.losses.trained-1), s.plan.heal, statistics.Median(slices.Clone(s.aligned))),
	}
}

func (s *study) runFindings() []string {
	fp32, delayed, channel, token := s.runs[fp32Run], s.runs[delayedRun], s.runs[channelRun], s.runs[tokenRun]
	each, current := s.runs[everyStepRun], s.runs[currentRun]
	after := func(step int) bool { return step >= 2*s.plan.window }
	before := func(step int) bool { return step < s.plan.window }
	return []string{
		fmt.Sprintf("The delayed run saturates in %d of %d steps: up to %s of the values, up to %.1f times beyond what is kept. Its held-out loss is up to %+.2f %% above FP32 until the scale is refreshed, up to %+.2f %% then, and %+.2f %% at the end: by then it has been trained around outliers that were cut, and under the margin over the outliers that are seen at last %s of the values are flushed to zero, against %s before.",
			delayed.saturatedSteps(), len(delayed.steps), report.Percent(delayed.largest(anyStep, saturatedOf)), delayed.largest(anyStep, stepFigures.reach),
			delayed.largestGap(fp32, s.plan.late), delayed.largestGap(fp32, after), delayed.lastGap(fp32),
			report.Percent(delayed.largest(after, flushedOf)), report.Percent(delayed.largest(before, flushedOf))),
		fmt.Sprintf("Smooth-SwiGLU per channel reaches %.2f times what its scale holds, and its loss is at most %+.2f %% above FP32 in all steps. Per token it reaches %.2f times what its scale holds, and its loss is at most %+.2f %% above FP32 while scales are late and up to %+.2f %% afterwards: a token's scale is shared by all channels, and %s of the values are flushed, against %s per channel.",
			channel.largest(anyStep, stepFigures.reach), channel.largestGap(fp32, anyStep),
			token.largest(anyStep, stepFigures.reach), token.largestGap(fp32, s.plan.late), token.largestGap(fp32, after),
			report.Percent(token.largest(anyStep, flushedOf)), report.Percent(channel.largest(anyStep, flushedOf))),
		fmt.Sprintf("Without delay one scale for the tensor does: just in time the loss is at most %+.2f %% above FP32. A delayed scale without margin that is refreshed each step, from the largest of 16, is exceeded by a factor of %.2f at most, at %+.2f %%: it is the window that makes it fail.",
			current.largestGap(fp32, anyStep), each.largest(anyStep, stepFigures.reach), each.largestGap(fp32, anyStep)),
		s.jumpFinding(),
	}
}

func (s *study) jumpFinding() string {
	at := slices.Index(jumpGains, grownGain)
	gap := func(name string) float64 {
		return s.jumpGap(slices.IndexFunc(s.jumps, func(j jumpFigures) bool { return j.name == name }), at)
	}
	return fmt.Sprintf("Smooth-SwiGLU makes growth linear and does not end it. Where gains grow to %d between two refreshes, without training, a scale without margin costs %+.2f %% per channel, %+.2f %% per token and %+.2f %% without smoothing; a margin of 2^%d, %+.2f, %+.2f and %+.2f %%.",
		grownGain, gap(jumpName(1, 0)), gap(jumpName(2, 0)), gap(jumpName(0, 0)), lateMargin,
		gap(jumpName(1, lateMargin)), gap(jumpName(2, lateMargin)), gap(jumpName(0, lateMargin)))
}

func (s *study) realFindings() []string {
	widest, layer := 0.0, s.real[0]
	low, high := math.Inf(1), math.Inf(-1)
	calm, wild := math.Inf(1), 0.0
	for _, f := range s.real {
		if ratio := f.amax / f.median; ratio > widest {
			widest, layer = ratio, f
		}
		calm, wild = min(calm, f.halves), max(wild, f.halves)
		for _, e := range f.asIs {
			low, high = min(low, e.sqnr), max(high, e.sqnr)
		}
	}
	return []string{fmt.Sprintf("Activations %s: the largest |z| is up to %.0f times the median (%s, where %s of the tokens have the largest channel within a factor of 4 of that). From the first half of the tokens to the second the largest |z| changes by factors from %.2f to %.2f. As they are, all ways are alike, from %.1f to %.1f dB.",
		s.whose(), widest, layer.name, report.Percent(layer.tokens), calm, wild, low, high)}
}

func (s *study) limits() []string {
	lines := []string{
		fmt.Sprintf("The outliers are made by hand: in Fishman et al. they come by themselves after 200 billion tokens of a model of 7 billion parameters, here from an intervention in one of %s. %d of %d neurons of each layer are aligned, and their gains grow %d-fold in %d steps, their columns of the down projection shrinking with the square.",
			s.where(), s.plan.neurons, s.base.Model.Config().Hidden, grownGain, s.plan.growth),
		fmt.Sprintf("The delayed runs refresh their scales once in a window of %d steps, as Fishman et al. do; weights are scaled just in time, since their rows grow too. The margin of 2^%d is chosen to lie between the gain and its square: that Smooth-SwiGLU holds and plain SwiGLU does not is what the theory says of that choice, and where others lead is in the table of jumps.",
			s.plan.window, lateMargin),
		fmt.Sprintf("All runs go on at a hundredth of the largest learning rate and with fresh moments of the optimizer. FP32 minds the outliers too: in the steps shown its held-out loss goes from %.3f to %.3f at most, since a step moves the shrunken columns as far as all others. It is one seed; scales just in time, which lose nothing to outliers, differ from FP32 by up to %.2f %%.",
			s.runs[fp32Run].steps[s.plan.every/2-1].heldOut, s.runs[fp32Run].largest(anyStep, heldOutOf),
			max(s.runs[currentRun].largestGap(s.runs[fp32Run], anyStep), s.runs[blockRun].largestGap(s.runs[fp32Run], anyStep))),
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
