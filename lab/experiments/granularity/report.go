package granularity

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/scaling"
)

// roomInE4M3 is by how much an amax may be above the one of its scale until a value
// saturates: 464, half-way to the code that would follow 448, rounds to 448.
const roomInE4M3 = 464.0 / 448

// seeds are studies of different seeds. What they have in common is the text: weights and
// batches are their own. Within one, blocks of a step share its tokens, and steps share
// weights and histories, so that a seed gives one value, however many blocks it has.
type seeds []*study

// report judges by all seeds. Findings, charts and most tables are of the first: findings
// state its figures, and conclude nothing but what became of goals.
func (s seeds) report() *report.Report {
	g := s[0]
	goals := s.goals()
	return &report.Report{
		Goals:    goals,
		Findings: slices.Concat(g.amaxFindings(), g.delayedFindings(goals), g.recipeFindings(goals)),
		Limits:   slices.Concat(s.limits(), g.limits()),
		Charts:   g.charts(),
		Tables:   append([]report.Table{s.table()}, g.tables()...),
	}
}

// figure is what is declared of a seed.
type figure struct {
	goal string
	of   func(g *study) float64
}

// weightsLast may be 0 in each seed, so that no interval belongs to it.
const weightsLast = "weights-last"

// figures are those that a seed gives one value of. If a history says nothing of a block,
// the amax of now and the n of before are n+1 numbers of one distribution, of which each is
// the largest as often as the others.
func figures() []figure {
	above := func(role scaling.Role, s scheme, limit float64) func(*study) float64 {
		return func(g *study) float64 { return 100 * statistics.ShareAbove(g.ratios(role, s), limit) }
	}
	more := func(role scaling.Role) func(*study) float64 {
		return func(g *study) float64 {
			return 100 * (g.together(role, blockLast).saturatedShare() - g.together(role, tensorLast).saturatedShare())
		}
	}
	return []figure{
		{"inputs-last", above(scaling.Input, blockLast, 1)},
		{"gradients-last", above(scaling.Gradient, blockLast, 1)},
		{"inputs-few", above(scaling.Input, blockFew, 1)},
		{"gradients-few", above(scaling.Gradient, blockFew, 1)},
		{weightsLast, above(scaling.Weight, blockLast, roomInE4M3)},
		{"inputs-saturate", more(scaling.Input)},
		{"gradients-saturate", more(scaling.Gradient)},
		{"tensor-long", func(g *study) float64 {
			most := math.Inf(-1)
			for _, o := range g.operands {
				most = max(most, g.lostBy(o, tensorNow, tensorLong))
			}
			return most
		}},
		{"tile-input", func(g *study) float64 { return g.tileGain(compared[0]) }},
		{"tile-gradient", func(g *study) float64 { return (g.tileGain(compared[2]) + g.tileGain(compared[3])) / 2 }},
		{"tile-flushes", (*study).flushedMore},
		{"block-last", func(g *study) float64 {
			lost := 0.0
			for _, name := range delayedOnes {
				lost += g.lostBy(g.operand(name), blockNow, blockLast) / float64(len(delayedOnes))
			}
			return lost
		}},
		{"e5m2", (*study).bitOfE4M3},
	}
}

// delayedOnes are those compared whose tokens change from step to step.
var delayedOnes = []string{compared[0], compared[2], compared[3]}

func (s seeds) values(f figure) []float64 { return statistics.Each(s, f.of) }

func (s seeds) goals() (goals []report.Goal) {
	for _, f := range figures() {
		values := s.values(f)
		if f.goal == weightsLast {
			goals = append(goals, declared().JudgeFigure(f.goal, slices.Max(values)).AtLength())
			continue
		}
		goals = append(goals, declared().Judge(f.goal, values))
	}
	return goals
}

func (s seeds) table() report.Table {
	columns := []report.Column[figure]{report.Cell("declared", func(f figure) string { return f.goal })}
	for _, g := range s {
		columns = append(columns, report.Cell(fmt.Sprintf("seed %d", g.seed), func(f figure) float64 { return f.of(g) }))
	}
	return report.Fill(report.Table{Name: "seeds", Title: "All that is declared, by seed"}, figures(), columns...)
}

// lostBy returns how many decibels of SQNR an operand loses by another scheme.
func (g *study) lostBy(o *operand, from, to scheme) float64 {
	return g.track(o, from).sqnr() - g.track(o, to).sqnr()
}

// tileGain is by how many decibels the SQNR of an operand is better in 1x128 than under one
// scale.
func (g *study) tileGain(name string) float64 {
	o := g.operand(name)
	return g.grain(o, tileGrain, fp8.E4M3).sqnr() - g.grain(o, tensorGrain, fp8.E4M3).sqnr()
}

// flushedMore is by how many percent of the nonzero values of gradients more become 0 under
// one scale than in 1x128.
func (g *study) flushedMore() float64 {
	fine, coarse := newOutcome(), newOutcome()
	for _, name := range []string{compared[2], compared[3]} {
		fine.add(g.grain(g.operand(name), tileGrain, fp8.E4M3).outcome)
		coarse.add(g.grain(g.operand(name), tensorGrain, fp8.E4M3).outcome)
	}
	return 100 * (coarse.flushedShare() - fine.flushedShare())
}

// bitOfE4M3 is by how many decibels E4M3 is better than E5M2, on average.
func (g *study) bitOfE4M3() float64 {
	var apart []float64
	for _, name := range compared {
		for _, n := range grains {
			o := g.operand(name)
			apart = append(apart, g.grain(o, n, fp8.E4M3).sqnr()-g.grain(o, n, fp8.E5M2).sqnr())
		}
	}
	return statistics.Mean(apart)
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

func (s seeds) limits() []string {
	return []string{fmt.Sprintf("Goals are judged by one value of each of %d seeds. Figures of what came out, charts and the other tables are of the first seed, and say nothing of how much others differ.", len(s))}
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
