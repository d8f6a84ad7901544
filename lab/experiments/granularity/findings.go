package granularity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/scaling"
)

// amaxFindings say how the blocks of a tensor differ from each other, and over training.
func (g *study) amaxFindings() []report.Finding {
	byRole := make(map[scaling.Role][]amaxSummary)
	for _, s := range summarize(g.seen) {
		byRole[roleOf(s.name)] = append(byRole[roleOf(s.name)], s)
	}
	// most returns the operand of a role with the largest figure.
	most := func(role scaling.Role, figure func(amaxSummary) float64) amaxSummary {
		return slices.MaxFunc(byRole[role], func(a, b amaxSummary) int {
			switch x, y := figure(a), figure(b); {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return strings.Compare(b.name, a.name) // the first of equals
		})
	}
	binades := func(s amaxSummary) float64 { return s.binades }
	input, weight, gradient := most(scaling.Input, binades), most(scaling.Weight, binades), most(scaling.Gradient, binades)
	lost := most(scaling.Gradient, func(s amaxSummary) float64 { return s.lost })
	zeros := most(scaling.Gradient, func(s amaxSummary) float64 { return s.zeros })
	clamped := most(scaling.Gradient, func(s amaxSummary) float64 { return s.clamped })
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("In a step the largest amax of a block is up to 2^%.1f times the smallest among gradients (%s), 2^%.1f among inputs (%s) and 2^%.1f among weights (%s); medians over steps.",
			gradient.binades, shortName(gradient.name), input.binades, shortName(input.name), weight.binades, shortName(weight.name))),
		report.NewFinding(fmt.Sprintf("Over training the amax of a whole gradient moved by a factor of %.3g (%s), that of an input by %.3g (%s).",
			gradient.most/gradient.least, shortName(gradient.name), input.most/input.least, shortName(input.name))),
		report.NewFinding(fmt.Sprintf("Of %s, %s of the blocks are all zero; queries of a first position have no gradient, since it attends to itself alone. Of %s, %s are so small that one scale for the tensor would flush them whole.",
			shortName(zeros.name), report.Percent(zeros.zeros), shortName(lost.name), report.Percent(lost.lost))),
		report.NewFinding(fmt.Sprintf("The loss is a mean over the tokens of a batch, which divides gradients by their number: %s of the blocks of %s are below 1e-4, to which deepseek and deepgemm raise an amax.",
			report.Percent(clamped.clamped), shortName(clamped.name))),
	}
}

// delayedFindings say what scales from the past are worth.
func (g *study) delayedFindings(goals []report.Goal) []report.Finding {
	product, weight, gradient := g.operand(compared[0]), g.operand(compared[1]), g.operand(compared[2])
	ratio := func(o *operand, share float64) float64 {
		return statistics.Quantile(slices.Sorted(slices.Values(g.track(o, blockLast).ratios)), share)
	}
	of := func(o *operand) string {
		return fmt.Sprintf("from %.3g to %.3g in %s", ratio(o, 0.01), ratio(o, 0.99), shortName(o.name))
	}
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("A block's amax over that of the last step goes %s and %s, where another token takes its place in each step, and %s, whose values stay where they are (98 %% of blocks). The scale of the last step has room for %.3f times the amax of that step. As declared, of all seeds: %s.",
			of(product), of(gradient), of(weight), roomInE4M3,
			report.Outcomes(goals, "inputs-last", "gradients-last", "inputs-saturate", "gradients-saturate"))),
		g.delayedFinding(product, goals), g.delayedFinding(gradient, goals),
		g.longFinding(gradient),
	}
}

// delayedFinding says what scales from the past cost an operand.
func (g *study) delayedFinding(o *operand, goals []report.Goal) report.Finding {
	now, last, few, long := g.track(o, blockNow), g.track(o, blockLast), g.track(o, blockFew), g.track(o, blockLong)
	return report.NewFinding(fmt.Sprintf("Under the scales of the last step values saturate in %s of the blocks of %s. Its SQNR is %s just in time, %s under the scales of the last step, %s under those of the largest amax of %d steps, and %s under those of all steps. As declared, of all seeds: %s.",
		report.Percent(last.saturatedBlocks()), shortName(o.name), report.Decibels(now.sqnr()), report.Decibels(last.sqnr()), report.Decibels(few.sqnr()), fewSteps, report.Decibels(long.sqnr()), report.Outcomes(goals, "block-last")))
}

// longFinding says what a long history leaves of small blocks.
func (g *study) longFinding(o *operand) report.Finding {
	block, last, now, whole := g.track(o, blockLong), g.track(o, blockLast), g.track(o, blockNow), g.track(o, tensorNow)
	return report.NewFinding(fmt.Sprintf("Under scales of the largest amax of all steps %s of the values of %s saturate, against %s under those of the last step, and %s of its nonzero values become 0, against %s just in time by block and %s just in time by tensor.",
		report.Percent(block.saturatedShare()), shortName(o.name), report.Percent(last.saturatedShare()), report.Percent(block.flushedShare()),
		report.Percent(now.flushedShare()), report.Percent(whole.flushedShare())))
}

// recipeFindings say what granularity and arithmetic are worth.
func (g *study) recipeFindings(goals []report.Goal) []report.Finding {
	var names []string
	apart := 0.0
	for _, o := range g.subjects {
		names = append(names, shortName(o.name))
		coarse, fine := g.profile(o, scaling.TECurrentPow2, fp8.E4M3).sqnr(), g.profile(o, scaling.TEBlockPow2, fp8.E4M3).sqnr()
		apart = max(apart, math.Abs(fine-coarse))
	}
	small := g.operand(compared[3])
	clamped, free := g.profile(small, scaling.DeepSeek, fp8.E4M3), g.profile(small, scaling.TEBlock, fp8.E4M3)
	floor, up := g.profile(g.subjects[0], scaling.MXFloor, fp8.E4M3), g.profile(g.subjects[0], scaling.MXRCeil, fp8.E4M3)
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("With scales that are powers of two, the SQNR by tensor (te-current-pow2) and by block (te-block-pow2) differs by at most %s on %s. What 1x128 is worth, as declared, of all seeds: %s.",
			report.Decibels(apart), strings.Join(names, ", "),
			report.Outcomes(goals, "tile-input", "tile-gradient", "tile-flushes"))),
		report.NewFinding(fmt.Sprintf("With amax raised to 1e-4 (deepseek), the SQNR of %s is %s with %s of the nonzero values flushed, and without (te-block) %s with %s.",
			shortName(small.name), report.Decibels(clamped.sqnr()), report.Percent(clamped.flushedShare()), report.Decibels(free.sqnr()), report.Percent(free.flushedShare()))),
		report.NewFinding(fmt.Sprintf("Rounding the scale down, as the Microscaling specification does (mx-floor), saturates %s of the values of %s, whose SQNR is %s with it and %s with the scale rounded up (mx-rceil).",
			report.Percent(floor.saturatedShare()), shortName(g.subjects[0].name), report.Decibels(floor.sqnr()), report.Decibels(up.sqnr()))),
	}
}
