package outliers

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// times is a mean factor over seeds with its interval, of logarithms to base 2.
func times(logarithms []float64) string {
	m := statistics.OfMean(logarithms, 1)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", math.Exp2(m.At), math.Exp2(m.Low), math.Exp2(m.High))
}

// change is a mean change of a loss over seeds with its interval.
func change(values []float64) string { return report.Interval(values, "%+.2f", " %") }

func (s *study) alignmentFinding(goals []report.Goal) report.Finding {
	at := func(of func(seedFigures) []alignment, figure func(alignment) float64) string {
		return report.Interval(s.atEnd(of, figure), "%.2f", "")
	}
	return report.NewFinding(fmt.Sprintf("After %d steps the median |cosine| of the two branches, of the twentieth of the neurons with the largest gain, is %s with weight decay (in brackets the interval over seeds) and %s without; of random directions it is %.2f. Of all neurons it is %s and %s. The largest |z| is %s times the root mean square with decay, and %s without. As declared: %s.",
		s.plan.base, at(decayedOf, alignment.top), at(freeOf, alignment.top), cosineAtRandom(s.plan.dim),
		at(decayedOf, alignment.all), at(freeOf, alignment.all),
		times(s.atEnd(decayedOf, alignment.logOutlier)), times(s.atEnd(freeOf, alignment.logOutlier)),
		report.Outcomes(goals, "alignment", "alignment-by-decay", "outlier-by-decay")))
}

func (s *study) growthFinding(goals []report.Goal) report.Finding {
	return report.NewFinding(fmt.Sprintf("In the %d steps in which a late scale stays, the largest |z| comes to %s times what the scale has seen where weights are fine-tuned, and to %s times where training goes on as before. The error of the down projection's output is %s and %s times that of a scale just in time. The first figure is of what was made, and no result: control growth checks that outliers grew as fine-tuning was chosen to make them. As declared: %s.",
		s.plan.window, times(s.growth(growingOf)), times(s.growth(calmOf)),
		times(s.ratio(growingOf, plainLate, plainNow)), times(s.ratio(calmOf, plainLate, plainNow)),
		report.Outcomes(goals, "growth", "stale", "stale-calm")))
}

func (s *study) smoothingFinding(goals []report.Goal) report.Finding {
	over := func(a, b string) string { return times(s.ratio(growingOf, a, b)) }
	return report.NewFinding(fmt.Sprintf("Smooth-SwiGLU per channel has %s times the error of plain SwiGLU where both are late, %s times where both are renewed in each step, and %s times where both are just in time. Where its own scales are just in time and the tensor's is late, it has %s times that of plain SwiGLU. As declared: %s.",
		over(channelLate, plainLate), over(channelEach, plainEach), over(channelNow, plainNow), over(channelFresh, plainLate),
		report.Outcomes(goals, "smoothing-late", "smoothing-token-late", "smoothing-each-step", "smoothing-now", "smoothing-fresh")))
}

func (s *study) blockFinding(goals []report.Goal) report.Finding {
	return report.NewFinding(fmt.Sprintf("Scales of 1x128 have %s times the error of one scale for the tensor just in time, and %s times where both are late. As declared: %s.",
		times(s.ratio(growingOf, blocksNow, plainNow)), times(s.ratio(growingOf, blocksLate, plainLate)),
		report.Outcomes(goals, "blocks-now", "stale-blocks")))
}

func (s *study) lossFinding(goals []report.Goal) report.Finding {
	return report.NewFinding(fmt.Sprintf("Quantizing the inputs of the same weights under late scales changes the held-out loss by %s, by %s with Smooth-SwiGLU as late, and by %s where only the tensor's scale is; under scales renewed in each step by %s, just in time by %s, and by %s in blocks of 1x128. Runs that are trained so are above FP32 by %s, in each step by %s, and just in time by %s. As declared: %s.",
		change(s.gaps(plainLate)), change(s.gaps(channelLate)), change(s.gaps(channelFresh)), change(s.gaps(plainEach)), change(s.gaps(plainNow)), change(s.gaps(blocksNow)),
		change(s.trainedGaps(plainLate)), change(s.trainedGaps(plainEach)), change(s.trainedGaps(plainNow)),
		report.Outcomes(goals, "loss-late", "loss-each-step", "loss-now", "trained-late", "trained-each-step", "trained-now")))
}
