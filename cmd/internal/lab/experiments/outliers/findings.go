package outliers

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

func (s *study) lawFindings() []report.Finding {
	var top, typical float64
	for _, n := range s.lastNatural() {
		if n.amax > top {
			top, typical = n.amax, n.median
		}
	}
	before := func(step int) bool { return step > 1 && step < s.plan.window }
	exceeded := s.runs[everyStepRun].largest(before, stepFigures.reach)
	aligning := statistics.Median(slices.Clone(s.aligned))
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("As trained, the model's largest |z| is %.3g, %.0f times the median. Until gains grow, a scale without margin from the steps before is exceeded by a factor of %.2f at most.",
			top, top/typical, exceeded),
			report.If(exceeded < 2, "So values as large come in every batch.", "So single batches have far larger ones.")),
		report.NewFinding(fmt.Sprintf("To align the %d neurons of each layer that matter most, and make them equally large, changes the held-out loss by %+.2f %%, and by %+.2f %% after %d more steps. Aligning alone changes their largest |z| by a factor of %.2f (median).",
			s.plan.neurons, 100*(s.losses.aligned/s.losses.trained-1), 100*(s.losses.healed/s.losses.trained-1), s.plan.heal, aligning),
			report.If(aligning < 2,
				"So what makes them outliers is the gain, the length of both rows, and not that they are aligned.",
				"So aligning makes them outliers already, before their gains grow.")),
	}
}

func (s *study) runFindings() []report.Finding {
	after := func(step int) bool { return step >= 2*s.plan.window }
	return []report.Finding{s.delayedFinding(after), s.smoothedFinding(after), s.windowFinding(), s.noiseFinding(), s.jumpFinding()}
}

func (s *study) delayedFinding(after func(step int) bool) report.Finding {
	fp32, delayed := s.runs[fp32Run], s.runs[delayedRun]
	before := func(step int) bool { return step < s.plan.window }
	lost, flushed, flushedBefore := delayed.largestGap(fp32, s.plan.late), delayed.largest(after, flushedOf), delayed.largest(before, flushedOf)
	return report.NewFinding(fmt.Sprintf("The delayed run saturates in %d of %d steps: up to %s of the values, the largest at %.1f times what the scale holds. Its held-out loss differs from that of FP32 by at most %+.2f %% until the scale is refreshed, %+.2f %% from then on, and %+.2f %% at the end.",
		delayed.saturatedSteps(), len(delayed.steps), report.Percent(delayed.largest(anyStep, saturatedOf)), delayed.largest(anyStep, stepFigures.reach),
		lost, delayed.largestGap(fp32, after), delayed.lastGap(fp32)),
		report.If(lost > lossFailed,
			fmt.Sprintf("What it cuts off costs more than twice the %v %% that FP8 training is allowed to lose.", lossAllowed),
			fmt.Sprintf("What it cuts off costs less here than twice the %v %% that FP8 training is allowed to lose.", lossAllowed)),
		report.If(flushed > flushedBefore,
			fmt.Sprintf("Once the scale has seen the outliers, its margin is above them, and %s of the values are flushed to zero, against %s before.", report.Percent(flushed), report.Percent(flushedBefore)),
			fmt.Sprintf("Once the scale has seen the outliers, no more values are flushed to zero than before: %s, against %s.", report.Percent(flushed), report.Percent(flushedBefore))))
}

func (s *study) smoothedFinding(after func(step int) bool) report.Finding {
	fp32, channel, token := s.runs[fp32Run], s.runs[channelRun], s.runs[tokenRun]
	byToken, byChannel := token.largest(anyStep, flushedOf), channel.largest(anyStep, flushedOf)
	gap := channel.largestGap(fp32, anyStep)
	return report.NewFinding(fmt.Sprintf("Smooth-SwiGLU per channel reaches %.2f times what its scale holds, and its loss is at most %+.2f %% above FP32 in all steps. Per token it reaches %.2f times what its scale holds, and its loss is at most %+.2f %% above FP32 while scales are late and %+.2f %% afterwards. %s of the values are flushed per token, and %s per channel.",
		channel.largest(anyStep, stepFigures.reach), gap, token.largest(anyStep, stepFigures.reach), token.largestGap(fp32, s.plan.late), token.largestGap(fp32, after),
		report.Percent(byToken), report.Percent(byChannel)),
		report.If(gap <= lossAllowed, "Per channel it loses no more than FP8 training is allowed.", "Per channel it loses more than FP8 training is allowed."),
		report.If(byToken > byChannel,
			"Per token more is flushed: all channels share a token's scale.",
			"Per token no more is flushed."))
}

// windowFinding tells a late scale from one that is merely from the past.
func (s *study) windowFinding() report.Finding {
	fp32, each := s.runs[fp32Run], s.runs[everyStepRun]
	current := s.runs[currentRun].largestGap(fp32, anyStep)
	gap, late := each.largestGap(fp32, anyStep), s.runs[delayedRun].largestGap(fp32, s.plan.late)
	otherwise := "The run that refreshes its scale once in a window did not fail here, so nothing can be said of the window."
	if late > lossFailed {
		otherwise = "It costs more than FP8 training is allowed too: the window is not what makes a delayed scale fail."
	}
	return report.NewFinding(fmt.Sprintf("With one scale for the tensor just in time, the loss is at most %+.2f %% above FP32. A delayed scale without margin that is refreshed each step, from the largest of 16, is exceeded by a factor of %.2f at most, and its loss is at most %+.2f %% above FP32.",
		current, each.largest(anyStep, stepFigures.reach), gap),
		report.If(current <= lossAllowed, "Without delay, one scale for the tensor is enough.", "Even without delay, one scale for the tensor loses more."),
		report.If(late > lossFailed && gap <= lossAllowed, "So it is the window that makes the delayed run fail.", otherwise))
}

// noiseFinding says what is not the fault of scales.
func (s *study) noiseFinding() report.Finding {
	fp32 := s.runs[fp32Run]
	first, most := fp32.steps[s.plan.every/2-1].heldOut, fp32.largest(anyStep, heldOutOf)
	return report.NewFinding(fmt.Sprintf("In the steps shown the held-out loss of FP32 itself goes from %.3f to %.3f at most, and with scales just in time, of the tensor and of blocks, it differs from that by at most %+.2f and %+.2f %%.",
		first, most, s.runs[currentRun].largestGap(fp32, anyStep), s.runs[blockRun].largestGap(fp32, anyStep)),
		report.If(most > 1.001*first,
			"So the outliers disturb FP32 too: a step moves the shrunken columns as far as all others.",
			"So the outliers do not disturb FP32."))
}

func (s *study) jumpFinding() report.Finding {
	at := slices.Index(jumpGains, grownGain)
	gap := func(name string) float64 {
		return s.jumpGap(slices.IndexFunc(s.jumps, func(j jumpFigures) bool { return j.name == name }), at)
	}
	return report.NewFinding(fmt.Sprintf("Where gains grow to %d between two refreshes, without training, a scale without margin changes the loss by %+.2f %% with Smooth-SwiGLU per channel, %+.2f %% per token and %+.2f %% without smoothing; with a margin of 2^%d, by %+.2f, %+.2f and %+.2f %%.",
		grownGain, gap(jumpName(1, 0)), gap(jumpName(2, 0)), gap(jumpName(0, 0)), lateMargin,
		gap(jumpName(1, lateMargin)), gap(jumpName(2, lateMargin)), gap(jumpName(0, lateMargin))),
		report.If(grows(slope(s.law, 1), 1) && grows(slope(s.law, 2), 1),
			"Smooth-SwiGLU makes growth linear; it does not end it.",
			"Smooth-SwiGLU does not make growth linear here."))
}

func (s *study) realFindings() []report.Finding {
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
	return []report.Finding{report.NewFinding(fmt.Sprintf("Activations %s: the largest |z| is up to %.0f times the median (%s, where %s of the tokens have the largest channel within a factor of 4 of that). From the first half of the tokens to the second the largest |z| changes by factors from %.2f to %.2f. As they are, the ways to quantize them leave from %.1f to %.1f dB.",
		s.whose(), widest, layer.name, report.Percent(layer.tokens), calm, wild, low, high),
		report.If(high-low <= 3, "So all ways are about alike.", "So the way to quantize them matters."))}
}
