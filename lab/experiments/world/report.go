package world

import (
	"fmt"

	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

func (s *study) report() *report.Report {
	goals := s.goals()
	return &report.Report{
		Goals: goals, Findings: s.findings(goals), Limits: s.limits(),
		Charts: s.charts(), Tables: s.tables(),
	}
}

func (s *study) limits() []string {
	return []string{
		"Ranks are goroutines: what they send, round and add is computed in full, and nothing here is about time.",
		fmt.Sprintf("Sums of gradients are simulated: the sum alone, of %d elements of one weight, as one part of an all-reduce would be added, over normal numbers with each element's mean and deviation among the gradients of %d sequences. Only %d ranks are also summed with those gradients themselves. The means of so few have noise themselves, so that sums over many more ranks have more of a common direction than those of gradients. The result goes back in FP32, and scales are each message's own.",
			s.elements, measuredSequences, measuredSequences),
		fmt.Sprintf("Experts are %d of width %d in each of two layers, on %d ranks, after %d steps of training; attention, norms and head are FP32. Rounding on the way counts as the identity in gradients. DeepEP's and sglang's reports are of benchmarks of large models, whose experts may give outliers that these do not.",
			routedExperts, routedHidden, routedRanks, s.routedSteps),
		"DeepEP's maintainers give no figure. sglang's pull request 19757 brought FP8 results as an option; issue 24866 reports that GSM8K fell below 0.8 where they were cast to E4M3 without scales, and pull request 24879 gave them scales by block. The cast is of what goes back, gradients among it.",
		fmt.Sprintf("Slices are of one layer of random weights that is trained toward random results for %d steps.", s.sliceSteps),
		fmt.Sprintf("Teams train one layer for %d steps on %d ranks: more ranks differ more in their amaxes. All parameters are gathered in the form of the wire unless another is said, the embedding, the head and the weights of norms among them: near 1 E4M3 under a scale that is a power of two has steps of 1/8, and such a weight cannot move.", s.teamSteps, teamRanks),
	}
}

// interval says a mean over seeds and where it lies.
func interval(values []float64) string { return report.Interval(values, "%+.3g", "") }

func (s *study) findings(goals []report.Goal) []report.Finding {
	output := func(k routeKind) string {
		return report.Percent(s.mean(func(of *sample) float64 { return of.routeOf(k).output }))
	}
	gradient := func(k routeKind) string {
		return report.Percent(s.mean(func(of *sample) float64 { return of.routeOf(k).gradient }))
	}
	sum := func(operands string, order collective.Order, f sumFormat) string {
		return report.Percent(statistics.Mean(s.sumErrors(operands, order, f)) / 100)
	}
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("Experts in FP8 are off by %s with BF16 both ways, by %s with E4M3 to them in their inputs' own form, by %s with FP32 scales, and by %s with E4M3 back; gradients by %s, %s, %s and %s, and by %s with a cast to E4M3 back.%s",
			output(bothBF16), output(dispatchPow2), output(dispatchFP8), output(combineFP8),
			gradient(bothBF16), gradient(dispatchPow2), gradient(dispatchFP8), gradient(combineFP8), gradient(combineCast),
			report.Outcomes(goals, "As declared", "dispatch-gradient", "combine-gradient", "combine-output", "combine-scales", "combine-cast"))),
		report.NewFinding(fmt.Sprintf("Experts in FP32 are off by %s with E4M3 to them and by %s with E4M3 back.%s",
			output(plainDispatch), output(plainCombine), report.Outcomes(goals, "As declared", "plain-experts"))),
		report.NewFinding(fmt.Sprintf("The held-out loss is above that with BF16 both ways by %s percent with E4M3 to experts, %s with E4M3 back and %s with MXFP4 back.%s",
			interval(s.lossAbove(dispatchPow2, bothBF16)), interval(s.lossAbove(combineFP8, bothBF16)), interval(s.lossAbove(combineFP4, bothBF16)),
			report.Outcomes(goals, "As declared", "dispatch-loss", "combine-loss"))),
		report.NewFinding(fmt.Sprintf("Gradients as measured, summed over %s ranks by simulation: a tree is off by %s in BF16, %s in E4M3, %s in MXFP8 and %s in NVFP4, a ring by %s, %s, %s and %s.%s",
			report.Whole(float64(s.most())), sum(withMean, collective.OrderTree, sumBF16), sum(withMean, collective.OrderTree, sumE4M3), sum(withMean, collective.OrderTree, sumMXFP8), sum(withMean, collective.OrderTree, sumNVFP4),
			sum(withMean, collective.OrderRing, sumBF16), sum(withMean, collective.OrderRing, sumE4M3), sum(withMean, collective.OrderRing, sumMXFP8), sum(withMean, collective.OrderRing, sumNVFP4),
			report.Outcomes(goals, "As declared", "sum-fp32", "sum-bf16-tree", "sum-real"))),
		report.NewFinding(fmt.Sprintf("Of noise alone, where each rank sends its operand once to who adds it (reduce-scatter) E4M3 is off by %s, in a tree by %s and around a ring by %s; NVFP4 by %s, %s and %s.%s",
			sum(noise, collective.OrderScatter, sumE4M3), sum(noise, collective.OrderTree, sumE4M3), sum(noise, collective.OrderRing, sumE4M3),
			sum(noise, collective.OrderScatter, sumNVFP4), sum(noise, collective.OrderTree, sumNVFP4), sum(noise, collective.OrderRing, sumNVFP4),
			report.Outcomes(goals, "As declared", "sum-scatter", "sum-mxfp8", "sum-nvfp4"))),
		report.NewFinding(fmt.Sprintf("With %d slices whatever the ranks, %.0f results on 2, 4 and 8 ranks differ from those on one; with as many slices as ranks at least %.3g %% do in FP32, %.3g %% in FP8 and %.3g %% in FP8 with sums in BF16.%s",
			sliceCount, s.differ(slicedFP32, true)+s.differ(slicedFP8, true)+s.differ(slicedBF16, true),
			s.leastDiffer(slicedFP32, false), s.leastDiffer(slicedFP8, false), s.leastDiffer(slicedBF16, false),
			report.Outcomes(goals, "As declared", "slices-fp32", "slices-fp8", "slices-bf16"))),
		report.NewFinding(fmt.Sprintf("With delayed scales the loss is above that with amaxes on time by %s percent where they come a step behind and by %s where they are never shared; gradients summed in E4M3 with amaxes of the step before, against shared ones, by %s.%s",
			interval(s.above(amaxBehind, amaxOnTime)), interval(s.above(amaxNever, amaxOnTime)), interval(s.above(sumLate, sumShared)),
			report.Outcomes(goals, "As declared", "amax-behind", "amax-never", "sum-late", "never-saturates", "late-saturates"))),
		report.NewFinding(fmt.Sprintf("Weights gathered in BF16 leave the loss %s percent above that with FP32, in E4M3 1x128 %s, under scales that are powers of two %s, in MXFP8 %s, in it but for norms %s and in MXFP4 %s.%s",
			interval(s.above(gatherBF16, gatherFP32)), interval(s.above(gatherFP8, gatherFP32)), interval(s.above(gatherPow2, gatherFP32)), interval(s.above(gatherMXFP8, gatherFP32)), interval(s.above(gatherNorms, gatherFP32)), interval(s.above(gatherFP4, gatherFP32)),
			report.Outcomes(goals, "As declared", "gather-bf16", "gather-fp8", "gather-pow2", "gather-norms"))),
	}
}
