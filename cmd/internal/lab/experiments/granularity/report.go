package granularity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/training"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
)

// roomInE4M3 is by how much an amax may be above the one of its scale until a value
// saturates: 464, half-way to the code that would follow 448, rounds to 448.
const roomInE4M3 = 464.0 / 448

func (g *study) report() *report.Report {
	return &report.Report{
		Goals:    slices.Concat(g.delayedGoals(), g.recipeGoals()),
		Findings: slices.Concat(g.amaxFindings(), g.delayedFindings(), g.recipeFindings()),
		Limits:   g.limits(),
		Charts:   g.charts(),
		Tables:   g.tables(),
	}
}

// delayedGoals say what a history is worth. If it says nothing of a block, the amax of
// now and the n of before are n+1 numbers of one distribution, of which each is the
// largest as often as the others.
func (g *study) delayedGoals() (goals []report.Goal) {
	goals = append(goals, g.neverSaturates())
	for _, role := range []scaling.Role{scaling.Input, scaling.Gradient} {
		last := statistics.ShareAbove(g.ratios(role, blockLast), 1)
		few := statistics.ShareAbove(g.ratios(role, blockFew), 1)
		goals = append(goals,
			report.NewGoal(fmt.Sprintf("%s: blocks of which the amax is above that of the last step", plural(role)),
				"1 in 2, if the last step says nothing of this one: from 45 to 55 %", report.Percent(last), last > 0.45 && last < 0.55).AtLength(),
			report.NewGoal(fmt.Sprintf("%s: blocks of which it is above all of the last %d steps", plural(role), fewSteps),
				fmt.Sprintf("1 in %d = %s, if they say nothing: from 4 to 8 %%", fewSteps+1, report.Percent(1.0/(fewSteps+1))), report.Percent(few), few > 0.04 && few < 0.08).AtLength())
	}
	moved := statistics.Quantile(g.ratios(scaling.Weight, blockLast), 1)
	goals = append(goals, report.NewGoal("Weights: the largest ratio of a block's amax to that of the last step",
		"below 464/448 = 1.036, above which values saturate", fmt.Sprintf("%.3f", moved), moved < roomInE4M3))
	for _, role := range []scaling.Role{scaling.Input, scaling.Gradient} {
		block, whole := g.together(role, blockLast).saturatedShare(), g.together(role, tensorLast).saturatedShare()
		goals = append(goals, report.NewGoal(fmt.Sprintf("%s, scales of the last step: values that saturate, by block over by tensor", plural(role)),
			"at least 10, as a tensor's amax is that of many blocks", fmt.Sprintf("%s over %s", report.Percent(block), report.Percent(whole)), block > 0 && block >= 10*whole).AtLength())
	}
	least := math.Inf(1)
	for _, name := range []string{compared[0], compared[2], compared[3]} {
		least = min(least, g.lostBy(g.operand(name), blockNow, blockLast))
	}
	most := math.Inf(-1)
	for _, o := range g.operands {
		most = max(most, g.lostBy(o, tensorNow, tensorLong))
	}
	return append(goals,
		report.NewGoal("Scales of the last step by block: the least loss of SQNR of the product of SwiGLU and the gradients that recipes are compared on",
			"more than a bit of mantissa, 6 dB", report.Decibels(least), least > 6).AtLength(),
		report.NewGoal("Scales of the largest of 1024 steps by tensor: the greatest loss of SQNR of all operands",
			"at most 0.5 dB", report.Decibels(most), most <= 0.5).AtLength(),
		g.flushedAtFirst())
}

func (g *study) neverSaturates() report.Goal {
	var values, saturated int64
	for _, t := range g.tracks {
		if t.scheme.name == blockNow.name {
			values += t.stats.Elements
			saturated += t.stats.Saturated()
		}
	}
	return report.NewGoal("Scales just in time by block: values that saturate, in all operands and steps",
		"none", fmt.Sprintf("%d of %d", saturated, values), saturated == 0 && values > 0)
}

func (g *study) flushedAtFirst() report.Goal {
	least := 1.0
	for i, o := range g.operands {
		if o.role == scaling.Gradient {
			least = min(least, g.met[i].flushedShare())
		}
	}
	return report.NewGoal("Gradients in blocks of which the history has seen zeros only, so that the scale is 1: values that become 0, the least of the operands",
		"more than half, which are below 2^-10", report.Percent(least), least > 0.5)
}

// lostBy returns how many decibels of SQNR an operand loses by another scheme.
func (g *study) lostBy(o *operand, from, to scheme) float64 {
	return g.track(o, from).sqnr() - g.track(o, to).sqnr()
}

func (g *study) recipeGoals() []report.Goal {
	least, most := math.Inf(1), math.Inf(-1)
	var bits []float64
	var fine, coarse fp8.Stats
	for _, o := range g.subjects {
		for _, n := range grains {
			bits = append(bits, g.grain(o, n, fp8.E4M3).sqnr()-g.grain(o, n, fp8.E5M2).sqnr())
		}
		tile, whole := g.grain(o, tileGrain, fp8.E4M3), g.grain(o, tensorGrain, fp8.E4M3)
		gain := tile.sqnr() - whole.sqnr()
		least, most = min(least, gain), max(most, gain)
		if o.role == scaling.Gradient {
			fine.Merge(&tile.stats)
			coarse.Merge(&whole.stats)
		}
	}
	bit, saturating := statistics.Median(bits), g.saturating()
	return []report.Goal{
		report.NewGoal("SQNR of 1x128 above that of one scale for the tensor, max/amax: all tensors",
			"at least 0 dB", fmt.Sprintf("%s to %s", report.Decibels(least), report.Decibels(most)), least >= 0),
		report.NewGoal("Gradients: nonzero values that become 0 in 1x128 and under one scale",
			"at most half as many", fmt.Sprintf("%d and %d of %d", fine.Flushed, coarse.Flushed, fine.Elements), 2*fine.Flushed <= coarse.Flushed && coarse.Flushed > 0).AtLength(),
		report.NewGoal("SQNR of E4M3 above that of E5M2: the median of all tensors and granularities",
			"a bit of mantissa, 6.02 dB: from 5.5 to 6.5", report.Decibels(bit), bit > 5.5 && bit < 6.5),
		report.NewGoal("Just-in-time profiles under which a value saturates",
			"mx-floor and mx-even, whose scales leave up to 512 and 496 where 448 is the largest code", strings.Join(saturating, ", "),
			slices.Equal(saturating, []string{string(scaling.MXFloor), string(scaling.MXEven)})),
	}
}

// grain returns what became of a subject in a granularity.
func (g *study) grain(o *operand, n grain, f fp8.Format) recipeOutcome {
	for _, e := range g.grains {
		if e.of == o && e.recipe.Block == n.block && e.recipe.Format == f {
			return e
		}
	}
	return recipeOutcome{outcome: newOutcome()}
}

// profile returns what became of a subject by a profile's recipe.
func (g *study) profile(o *operand, p scaling.Profile, f fp8.Format) recipeOutcome {
	for _, e := range g.profiles {
		if e.of == o && e.recipe.Profile == p && e.recipe.Format == f {
			return e
		}
	}
	return recipeOutcome{outcome: newOutcome()}
}

// saturating returns the just-in-time profiles by which a value saturated.
func (g *study) saturating() (names []string) {
	for _, e := range g.profiles {
		name := string(e.recipe.Profile)
		if e.stats.Saturated() > 0 && !e.recipe.Profile.Delayed() && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (g *study) limits() []string {
	limits := []string{
		fmt.Sprintf("One model of %d values, trained for %d steps of %d sequences of %d bytes; its loss went from %.2f to %.2f nats a byte. What grows over long training, such as outliers of SwiGLU, is not in it.",
			g.run.Params(), g.steps, g.batch, training.SmallContext, g.losses[0], g.losses[len(g.losses)-1]),
		fmt.Sprintf("Inputs and gradients are those of the first %d sequences of each batch.", g.looked),
		"Each place in the grid of blocks has a history of its own. Batches are random windows: text in order would have no more in common from step to step at one place.",
	}
	if len(g.subjects) == len(compared) {
		limits = append(limits, "Recipes were compared on tensors of that model only; --activations adds one of a real model.")
	}
	return limits
}

// plural names a role's tensors at the beginning of a sentence.
func plural(role scaling.Role) string {
	return [...]string{scaling.Input: "Inputs", scaling.Weight: "Weights", scaling.Gradient: "Gradients"}[role]
}
