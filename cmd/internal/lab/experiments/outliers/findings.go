package outliers

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

func (s *study) alignmentFinding() report.Finding {
	at := func(of func(seedFigures) []alignment, figure func(alignment) float64) float64 {
		return statistics.Mean(s.atEnd(of, figure))
	}
	top, free := at(decayedOf, alignment.top), at(freeOf, alignment.top)
	return report.NewFinding(fmt.Sprintf("After %d steps the median |cosine| of the two branches, of the twentieth of the neurons with the largest gain, is %.2f with weight decay and %.2f without; of random directions it is %.2f. Of all neurons it is %.2f and %.2f. The largest |z| is %.0f times the root mean square with decay, and %.0f without.",
		s.plan.base, top, free, cosineAtRandom(s.plan.dim), at(decayedOf, alignment.all), at(freeOf, alignment.all),
		math.Exp2(at(decayedOf, alignment.logOutlier)), math.Exp2(at(freeOf, alignment.logOutlier))),
		report.If(free > 2*cosineAtRandom(s.plan.dim),
			"Branches align without weight decay too: the gradient alone turns them to each other.",
			"Without weight decay they hardly align."),
		report.If(statistics.OfMean(s.byDecay(alignment.top), 1).Low > 0,
			"With decay those of the largest gain are aligned more.",
			"That decay aligns those of the largest gain more is not seen."))
}

func (s *study) growthFinding() report.Finding {
	growing, calm := factor(s.growth(growingOf)), factor(s.growth(calmOf))
	lost := factor(s.ratio(growingOf, plainLate, plainNow))
	return report.NewFinding(fmt.Sprintf("In the %d steps in which a late scale stays, the largest |z| comes to %.2f times what the scale has seen where weights are fine-tuned, and to %.2f times where training goes on as before. The error of the down projection's output is %.2f and %.2f times that of a scale just in time.",
		s.plan.window, growing, calm, lost, factor(s.ratio(calmOf, plainLate, plainNow))),
		report.If(lost > 2,
			"So a late scale loses the outliers that grow.",
			"So what grows in this time costs a late scale little."))
}

func (s *study) smoothingFinding() report.Finding {
	sameAge, fresh := factor(s.ratio(growingOf, channelLate, plainLate)), factor(s.ratio(growingOf, channelFresh, plainLate))
	helps := statistics.OfMean(s.ratio(growingOf, channelFresh, plainLate), 1)
	younger := statistics.OfMean(s.ratio(growingOf, channelFresh, channelLate), 1)
	return report.NewFinding(fmt.Sprintf("Smooth-SwiGLU per channel has %.2f times the error of plain SwiGLU where both are late, %.2f times where both are renewed in each step, and %.2f times where both are just in time. Where its own scales are just in time and the tensor's is late, it has %.2f times that of plain SwiGLU.",
		sameAge, factor(s.ratio(growingOf, channelEach, plainEach)), factor(s.ratio(growingOf, channelNow, plainNow)), fresh),
		report.If(helps.High < 0 && younger.High < 0,
			"So smoothing that looks at the present tensor helps, and more than one that is as late as the scale.",
			"That fresh smoothing helps more than one that is as late as the scale is not seen."))
}

func (s *study) blockFinding() report.Finding {
	now, late := s.ratio(growingOf, blocksNow, plainNow), s.ratio(growingOf, blocksLate, plainLate)
	return report.NewFinding(fmt.Sprintf("Scales of 1x128 have %.2f times the error of one scale for the tensor just in time, and %.2f times where both are late.", factor(now), factor(late)),
		report.If(statistics.OfMean(now, 1).High < 0 && statistics.OfMean(late, 1).Low > 0,
			"Small blocks are better only where they see their own tensor.",
			"That they are better just in time and worse late is not seen."))
}

// diverged is by how many percent a loss is above another where one speaks of divergence.
const diverged = 10

func (s *study) lossFinding() report.Finding {
	text := func(values []float64) string {
		_, ofMean := statistics.Spread(values)
		return fmt.Sprintf("%+.2f %% (standard error %.2f)", statistics.Mean(values), ofMean)
	}
	later := statistics.OfMean(statistics.Differences(s.gaps(plainLate), s.gaps(plainEach)), 1)
	return report.NewFinding(fmt.Sprintf("Quantizing the inputs of the same weights under late scales changes the held-out loss by %s, by %s with Smooth-SwiGLU as late, and by %s where only the tensor's scale is; under scales renewed in each step by %s, just in time by %s, and by %s in blocks of 1x128. Runs that are trained so are above FP32 by %s, in each step by %s, and just in time by %s.",
		text(s.gaps(plainLate)), text(s.gaps(channelLate)), text(s.gaps(channelFresh)), text(s.gaps(plainEach)), text(s.gaps(plainNow)), text(s.gaps(blocksNow)),
		text(s.trainedGaps(plainLate)), text(s.trainedGaps(plainEach)), text(s.trainedGaps(plainNow))),
		report.If(later.Low > 0, "A scale of each step loses less than a late one.",
			"A scale of each step is not seen to lose less than a late one."),
		report.If(statistics.Mean(s.trainedGaps(plainLate)) > diverged,
			"Training under late scales diverges.",
			"Training under late scales does not diverge here: weights follow what saturation leaves of the outliers."))
}
