package world

import (
	"slices"

	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

// most is the largest number of ranks that gradients are summed over.
func (s *study) most() int { return slices.Max(s.scope.sums) }

// routeOver is a figure of one way to send tokens over that of another, by seed.
func (s *study) routeOver(a, b routeKind, figure func(*route) float64) []float64 {
	return s.bySeed(func(of *sample) float64 { return figure(of.routeOf(a)) / figure(of.routeOf(b)) })
}

// lossAbove is by how many percent the held-out loss of one way is above that of another.
func (s *study) lossAbove(a, b routeKind) []float64 {
	return s.bySeed(func(of *sample) float64 {
		return 100 * (of.routeOf(a).loss/of.routeOf(b).loss - 1)
	})
}

// Figures of a way.
func outputError(r *route) float64   { return r.output }
func gradientError(r *route) float64 { return r.gradient }

// sumErrors is the error of a sum over the most ranks, in percent, by seed.
func (s *study) sumErrors(operands string, order collective.Order, f sumFormat) []float64 {
	return s.bySeed(func(of *sample) float64 {
		return 100 * of.sumOf(operands, s.most(), order, f).RMS
	})
}

// sumRatios is that error in one order and format over that in another.
func (s *study) sumRatios(operands string, a, b collective.Order, f, g sumFormat) []float64 {
	return s.bySeed(func(of *sample) float64 {
		return of.sumOf(operands, s.most(), a, f).RMS / of.sumOf(operands, s.most(), b, g).RMS
	})
}

// above is by how many percent the loss of a team is above that of another, by seed.
func (s *study) above(name, other string) []float64 {
	return s.bySeed(func(of *sample) float64 { return of.above(name, other) })
}

func (s *study) goals() []report.Goal {
	const tree, ring, scatter = collective.OrderTree, collective.OrderRing, collective.OrderScatter
	goals := []report.Goal{
		declared().Judge("dispatch-gradient", s.routeOver(dispatchPow2, bothBF16, gradientError)),
		declared().Judge("combine-gradient", s.routeOver(combineFP8, dispatchPow2, gradientError)),
		declared().Judge("combine-output", s.routeOver(combineFP8, dispatchPow2, outputError)),
		declared().Judge("combine-scales", s.routeOver(combineFP8, dispatchFP8, outputError)),
		declared().Judge("plain-experts", s.routeOver(plainDispatch, plainCombine, outputError)),
		declared().Judge("dispatch-loss", s.lossAbove(dispatchPow2, bothBF16)).AtLength(),
		declared().Judge("combine-loss", s.lossAbove(combineFP8, dispatchPow2)).AtLength(),
		declared().Judge("combine-fp4", s.routeOver(combineFP4, bothBF16, outputError)),
		declared().Judge("combine-cast", s.routeOver(combineCast, bothBF16, gradientError)),
		declared().Judge("combine-fp4-loss", s.lossAbove(combineFP4, bothBF16)).AtLength(),

		declared().Judge("sum-fp32", s.bySeed(func(of *sample) (most float64) {
			for _, order := range sumOrders {
				most = max(most, 100*of.sumOf(withMean, s.most(), order, sumFP32).RMS)
			}
			return most
		})).AtLength(),
		declared().Judge("sum-bf16-tree", s.sumErrors(withMean, tree, sumBF16)).AtLength(),
		declared().Judge("sum-scatter", s.sumRatios(noise, scatter, tree, sumE4M3, sumE4M3)).AtLength(),
		declared().Judge("sum-mxfp8", s.sumRatios(noise, tree, tree, sumMXFP8, sumE4M3)).AtLength(),
		declared().Judge("sum-nvfp4", s.sumErrors(noise, tree, sumNVFP4)).AtLength(),
		declared().Judge("sum-real", s.bySeed(func(of *sample) float64 {
			return of.sumOf(measured, measuredSequences, tree, sumE4M3).RMS /
				of.sumOf(withMean, measuredSequences, tree, sumE4M3).RMS
		})).AtLength(),
		declared().Judge("sum-bf16-ring", s.sumErrors(withMean, ring, sumBF16)).AtLength(),
		declared().Judge("sum-fp8-ring", s.sumErrors(withMean, ring, sumE4M3)).AtLength(),

		declared().Judge("gather-bf16", s.above(gatherBF16, gatherFP32)).AtLength(),
		declared().Judge("gather-fp8", s.above(gatherFP8, gatherFP32)).AtLength(),
		declared().Judge("gather-pow2", s.above(gatherPow2, gatherFP32)).AtLength(),
		declared().Judge("gather-norms", s.above(gatherNorms, gatherFP32)).AtLength(),
		declared().Judge("amax-behind", s.above(amaxBehind, amaxOnTime)).AtLength(),
		declared().Judge("amax-never", s.above(amaxNever, amaxOnTime)).AtLength(),
		declared().Judge("sum-late", s.above(sumLate, sumShared)).AtLength(),
		declared().Judge("gather-fp4", s.above(gatherFP4, gatherFP32)).AtLength(),

		declared().Judge("never-saturates", s.saturatesMore(amaxNever, amaxOnTime, inProducts)).AtLength(),
		declared().Judge("late-saturates", s.saturatesMore(sumLate, sumShared, inSums)).AtLength(),
	}
	for _, g := range []struct {
		fixed, byRank string
		kind          slicedKind
	}{
		{"slices-fp32", "ranks-fp32", slicedFP32},
		{"slices-fp8", "ranks-fp8", slicedFP8},
		{"slices-bf16", "ranks-bf16", slicedBF16},
	} {
		goals = append(goals,
			declared().JudgeFigure(g.fixed, s.differ(g.kind, true)),
			declared().JudgeFigure(g.byRank, s.leastDiffer(g.kind, false)))
	}
	return goals
}

// Shares of values that saturate in a team.
func inProducts(t *team) float64 { return t.saturated }
func inSums(t *team) float64     { return t.summed }

// saturatesMore is by how many values in a million more saturate in a team than in another.
func (s *study) saturatesMore(name, other string, figure func(*team) float64) []float64 {
	return s.bySeed(func(of *sample) float64 {
		return 1e6 * (figure(of.teamOf(name)) - figure(of.teamOf(other)))
	})
}
