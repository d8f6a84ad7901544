package outliers

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

func (s *study) report() *report.Report {
	goals := s.goals()
	return &report.Report{
		Goals: goals,
		Findings: []report.Finding{
			s.alignmentFinding(goals), s.growthFinding(goals), s.smoothingFinding(goals),
			s.blockFinding(goals), s.lossFinding(goals),
		},
		Limits: s.limits(),
		Charts: []chart.Chart{s.alignmentChart(), s.amaxChart(), s.errorChart(), s.gapChart(), s.trainedChart()},
		Tables: s.tables(),
	}
}

// goals are what is declared, each by a value of each seed.
func (s *study) goals() []report.Goal {
	return []report.Goal{
		declared().Judge("alignment", s.atEnd(freeOf, alignment.top)),
		declared().Judge("alignment-by-decay", s.byDecay(alignment.top)),
		declared().Judge("outlier-by-decay", s.byDecay(alignment.logOutlier)),
		declared().Judge("growth", s.growth(growingOf)),
		declared().Judge("stale", s.ratio(growingOf, plainLate, plainNow)),
		declared().Judge("stale-blocks", s.ratio(growingOf, blocksLate, blocksNow)),
		declared().Judge("stale-calm", s.ratio(calmOf, plainLate, plainNow)),
		declared().Judge("smoothing-late", s.ratio(growingOf, channelLate, plainLate)),
		declared().Judge("smoothing-token-late", s.ratio(growingOf, tokenLate, plainLate)),
		declared().Judge("smoothing-fresh", s.ratio(growingOf, channelFresh, plainLate)),
		declared().Judge("smoothing-each-step", s.ratio(growingOf, channelEach, plainEach)),
		declared().Judge("smoothing-now", s.ratio(growingOf, channelNow, plainNow)),
		declared().Judge("each-step", s.ratio(growingOf, plainEach, plainNow)),
		declared().Judge("blocks-now", s.ratio(growingOf, blocksNow, plainNow)),
		declared().Judge("loss-late", s.gaps(plainLate)),
		declared().Judge("loss-smoothing-late", statistics.Differences(s.gaps(channelLate), s.gaps(plainLate))),
		declared().Judge("loss-smoothing-fresh", statistics.Differences(s.gaps(channelFresh), s.gaps(plainLate))),
		declared().Judge("loss-each-step", s.gaps(plainEach)),
		declared().Judge("loss-now", s.gaps(plainNow)),
		declared().Judge("loss-smoothing-now", s.gaps(channelNow)),
		declared().Judge("loss-blocks-now", s.gaps(blocksNow)),
		declared().Judge("trained-late", statistics.Differences(s.trainedGaps(plainLate), s.trainedGaps(plainNow))),
		declared().Judge("trained-each-step", statistics.Differences(s.trainedGaps(plainEach), s.trainedGaps(plainNow))),
		declared().Judge("trained-now", s.trainedGaps(plainNow)),
	}
}

func (s *study) limits() []string {
	p := s.plan
	tokens := p.batch * p.seq
	lines := []string{
		fmt.Sprintf("%d seeds of weights and batches of one text, in a model of %d layers of width %d trained on %d bytes. In Fishman et al. outliers appear after 200 billion tokens in one of 7 billion parameters, at a weight decay of 0.1 and a rate of 3e-4; here neurons align by themselves in %d steps at a decay of %v and a rate of %v, both higher so that weights come to an equilibrium in that time.",
			p.seeds, p.layers, p.dim, p.base*tokens, p.base, trainingDecay, trainingRate),
		fmt.Sprintf("What makes outliers grow while scales are late is fine-tuning at a rate of %v, warmed up in %d steps, without weight decay and with new moments of the optimizer: nobody multiplies weights, but the rate is chosen so that they grow within the %d steps.",
			tuningRate, tuningWarmup, p.window),
		fmt.Sprintf("A late scale is the largest of %d steps and stays for %d, without margin. Smoothing that is late takes its scales from the same steps. Only inputs of linear layers are delayed; weights and gradients are scaled just in time by tensor in all runs.",
			history, p.window),
		"Errors of outputs are of all ways on the same tensors, those of training in FP32, with weights that are not quantized. Losses under a way are first those of the same weights, and then those of runs of their own, in which errors come back and which any difference sets on another course.",
	}
	if s.options.Activations == nil {
		lines = append(lines, "--activations was not given: what a real model's are like is not shown.")
	}
	return lines
}

// factor is 2 to the mean of logarithms.
func factor(logarithms []float64) float64 { return math.Exp2(statistics.Mean(logarithms)) }
