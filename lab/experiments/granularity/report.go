package granularity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab/chart"
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
		report.NewFinding(fmt.Sprintf("A block's amax over that of the last step goes %s and %s, where another token takes its place in each step, and %s, whose values stay where they are (98 %% of blocks). The scale of the last step has room for %.3f times the amax of that step.%s",
			of(product), of(gradient), of(weight), roomInE4M3,
			report.Outcomes(goals, "As declared, of all seeds", "inputs-last", "gradients-last", "inputs-saturate", "gradients-saturate"))),
		g.delayedFinding(product, goals), g.delayedFinding(gradient, goals),
		g.longFinding(gradient),
	}
}

// delayedFinding says what scales from the past cost an operand.
func (g *study) delayedFinding(o *operand, goals []report.Goal) report.Finding {
	now, last, few, long := g.track(o, blockNow), g.track(o, blockLast), g.track(o, blockFew), g.track(o, blockLong)
	return report.NewFinding(fmt.Sprintf("Under the scales of the last step values saturate in %s of the blocks of %s. Its SQNR is %s just in time, %s under the scales of the last step, %s under those of the largest amax of %d steps, and %s under those of all steps.%s",
		report.Percent(last.saturatedBlocks()), shortName(o.name), report.Decibels(now.sqnr()), report.Decibels(last.sqnr()), report.Decibels(few.sqnr()), fewSteps, report.Decibels(long.sqnr()), report.Outcomes(goals, "As declared, of all seeds", "block-last")))
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
		report.NewFinding(fmt.Sprintf("With scales that are powers of two, the SQNR by tensor (te-current-pow2) and by block (te-block-pow2) differs by at most %s on %s.%s",
			report.Decibels(apart), strings.Join(names, ", "),
			report.Outcomes(goals, "What 1x128 is worth, as declared, of all seeds", "tile-input", "tile-gradient", "tile-flushes"))),
		report.NewFinding(fmt.Sprintf("With amax raised to 1e-4 (deepseek), the SQNR of %s is %s with %s of the nonzero values flushed, and without (te-block) %s with %s.",
			shortName(small.name), report.Decibels(clamped.sqnr()), report.Percent(clamped.flushedShare()), report.Decibels(free.sqnr()), report.Percent(free.flushedShare()))),
		report.NewFinding(fmt.Sprintf("Rounding the scale down, as the Microscaling specification does (mx-floor), saturates %s of the values of %s, whose SQNR is %s with it and %s with the scale rounded up (mx-rceil).",
			report.Percent(floor.saturatedShare()), shortName(g.subjects[0].name), report.Decibels(floor.sqnr()), report.Decibels(up.sqnr()))),
	}
}

func (g *study) tables() []report.Table {
	return []report.Table{
		report.Write(report.Table{
			Name:    "scales",
			Title:   "Scales just in time and from the past, max/amax in E4M3, all steps measured",
			Columns: []string{"operand", "scale", "saturated %", "blocks with saturated values %", "nonzero values flushed %", "SQNR dB"},
		}, func(t *report.Table) {
			for _, k := range g.tracks {
				t.Add(shortName(k.of.name), k.scheme.name, 100*k.saturatedShare(), 100*k.saturatedBlocks(), 100*k.flushedShare(), k.sqnr())
			}
		}),
		g.ratioTable(),
		g.profileTable(),
		report.Write(report.Table{
			Name:  "amax",
			Title: "Amax of every operand over training: by tensor, and of its blocks",
			Columns: []string{"operand", "blocks", "first step", "last", "least", "most", "blocks' range, binades",
				"all zero %", "below 1e-4 %", "subnormal under the tensor's scale %", "flushed under it %"},
		}, func(t *report.Table) {
			for _, s := range summarize(g.seen) {
				t.Add(shortName(s.name), s.blocks, s.first, s.last, s.least, s.most, s.binades, 100*s.zeros, 100*s.clamped, 100*s.subnormals, 100*s.lost)
			}
		}),
		// A line for each tensor, recipe and format.
		report.Write(report.Table{
			Name: "recipes", Raw: true,
			Columns: []string{"tensor", "profile", "block", "format", "SQNR dB", "nonzero values flushed %", "saturated %", "scale bytes a value"},
		}, func(t *report.Table) {
			for _, e := range slices.Concat(g.profiles, g.grains) {
				t.Add(shortName(e.of.name), string(e.recipe.Profile), e.recipe.Block.String(), e.recipe.Format.String(),
					e.sqnr(), 100*e.flushedShare(), 100*e.saturatedShare(), e.scaleBytes)
			}
		}),
		report.Write(report.Table{
			Name: "amax-steps", Raw: true,
			Columns: []string{"step", "operand", "blocks", "all zero", "amax of the tensor", "quantile 0.95 of blocks", "0.5", "0.05", "least above 0"},
		}, func(t *report.Table) {
			for _, a := range g.seen {
				t.Add(a.step, shortName(a.name), a.blocks(), a.zeros, a.ofTensor(), statistics.Quantile(a.sorted, 0.95), statistics.Quantile(a.sorted, 0.5), statistics.Quantile(a.sorted, 0.05), statistics.Quantile(a.sorted, 0))
			}
		}),
		report.Write(report.Table{
			Name: "scales-steps", Raw: true,
			Columns: []string{"step", "operand", "scale", "saturated %", "blocks with saturated values %", "nonzero values flushed %", "SQNR dB"},
		}, func(t *report.Table) {
			for _, k := range g.tracks {
				for _, at := range k.points {
					t.Add(at.step, shortName(k.of.name), k.scheme.name, 100*at.saturatedShare(), 100*at.saturatedBlocks(), 100*at.flushedShare(), at.sqnr())
				}
			}
		}),
	}
}

// ratioQuantiles are the columns of the table of ratios.
var ratioQuantiles = []float64{0.01, 0.25, 0.5, 0.75, 0.99, 1}

// ranked are the ratios of a track in their order.
type ranked struct {
	*track
	sorted []float64
}

func (g *study) ratioTable() report.Table {
	var delayed []ranked
	for _, k := range g.tracks {
		if k.scheme.delayed != nil {
			delayed = append(delayed, ranked{k, slices.Sorted(slices.Values(k.ratios))})
		}
	}
	columns := []report.Column[ranked]{
		report.Cell("operand", func(k ranked) string { return shortName(k.of.name) }), report.Cell("scale", func(k ranked) string { return k.scheme.name }),
		report.Cell("above 1 %", func(k ranked) float64 { return 100 * statistics.ShareAbove(k.sorted, 1) }),
	}
	for _, q := range ratioQuantiles {
		columns = append(columns, report.Cell(fmt.Sprintf("quantile %g", q), func(k ranked) float64 { return statistics.Quantile(k.sorted, q) }))
	}
	return report.Fill(report.Table{Name: "ratios", Title: "Amax over that of the history, where both are above 0"}, delayed, columns...)
}

// profileTable has a line for each profile.
func (g *study) profileTable() report.Table {
	columns := []report.Column[scaling.Profile]{
		report.Cell("profile", func(p scaling.Profile) string { return string(p) }),
		report.Cell("block of inputs", func(p scaling.Profile) string { return p.Block(scaling.Input).String() }),
		report.Cell("of weights", func(p scaling.Profile) string { return p.Block(scaling.Weight).String() }),
	}
	for _, o := range g.subjects {
		of := func(p scaling.Profile) recipeOutcome { return g.profile(o, p, fp8.E4M3) }
		columns = append(columns, report.Cell(shortName(o.name)+" SQNR dB", func(p scaling.Profile) float64 { return of(p).sqnr() }),
			report.Cell("flushed %", func(p scaling.Profile) float64 { return 100 * of(p).flushedShare() }),
			report.Cell("saturated %", func(p scaling.Profile) float64 { return 100 * of(p).saturatedShare() }))
	}
	return report.Fill(report.Table{Name: "profiles", Title: "Every profile's recipe in E4M3 on the same tensors, late in training"}, scaling.ProfilesFor(fp8.E4M3), columns...)
}

func (g *study) charts() []chart.Chart {
	product, gradient := g.operand(compared[0]), g.operand(compared[2])
	return []chart.Chart{
		report.Draw(chart.Chart{Title: "Amax per tensor", X: "step", Y: "amax", LogY: true}, func(p *report.Plot) {
			for _, o := range g.operands {
				for _, a := range g.watchedOf(o) {
					p.Add(operandSeries(o), a.step, a.ofTensor())
				}
			}
		}),
		g.blockChart(product),
		g.blockChart(gradient),
		report.Draw(chart.Chart{Title: "A block's amax over that of the last step", X: "percent of blocks below", Y: "ratio", LogY: true,
			Lines: []chart.Reference{{Name: "room of the scale", Value: roomInE4M3}}}, func(p *report.Plot) {
			for _, o := range g.operands {
				sorted := slices.Sorted(slices.Values(g.track(o, blockLast).ratios))
				for percent := 1.0; percent <= 99; percent++ {
					p.Add(operandSeries(o), percent, statistics.Quantile(sorted, percent/100))
				}
			}
		}),
		g.schemeChart("SQNR by when the scale is known", "dB", outcome.sqnr),
		g.schemeChart("Values that saturate", "percent", func(o outcome) float64 { return 100 * o.saturatedShare() }),
		g.overTraining(product),
		g.overTraining(gradient),
		g.grainChart("SQNR by granularity, max/amax in E4M3", "dB", outcome.sqnr),
		g.grainChart("Nonzero values that become 0, by granularity", "percent", func(o outcome) float64 { return 100 * o.flushedShare() }),
	}
}

// watchedOf are the amaxes of the blocks of an operand, step by step.
func (g *study) watchedOf(o *operand) []amaxes {
	return slices.DeleteFunc(slices.Clone(g.watched), func(a amaxes) bool { return a.name != o.name })
}

// blockChart shows how the blocks of an operand spread.
func (g *study) blockChart(o *operand) chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: fmt.Sprintf("Amax of the blocks of %s", shortName(o.name)), X: "step", Y: "amax", LogY: true}}
	for _, a := range g.watchedOf(o) {
		for i, name := range []string{"largest: the tensor's", "95 %", "median", "5 %", "smallest above 0"} {
			p.Add(chart.Series{Name: name}, a.step, statistics.Quantile(a.sorted, []float64{1, 0.95, 0.5, 0.05, 0}[i]))
		}
	}
	return p.Chart
}

// series is one about a scheme: its colour says when the scale is known, and it is dashed
// where that is a block's.
func (s scheme) series(m chart.Mark) chart.Series {
	_, known, _ := strings.Cut(s.name, ", ")
	return chart.Series{Name: s.name, Color: chart.Key(known), Mark: m, Dashed: s.perBlock}
}

// operandSeries is one about an operand, dashed for the second of a layer's.
func operandSeries(o *operand) chart.Series {
	return chart.Series{Name: shortName(o.name), Dashed: strings.Contains(shortName(o.name), ".up.")}
}

// schemeChart shows a figure of all operands under all schemes.
func (g *study) schemeChart(title, unit string, figure func(outcome) float64) chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: title, Y: unit}}
	for _, o := range g.operands {
		for _, by := range schemes {
			p.Add(by.series(chart.Joined), label(o), figure(g.track(o, by).outcome))
		}
	}
	return p.Chart
}

// overTraining shows the SQNR of an operand under all schemes.
func (g *study) overTraining(o *operand) chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "SQNR of " + shortName(o.name), X: "step", Y: "dB"}}
	for _, by := range schemes {
		for _, at := range g.track(o, by).points {
			p.Add(by.series(chart.Line), at.step, at.sqnr())
		}
	}
	return p.Chart
}

// grainChart shows a figure of E4M3 in all granularities.
func (g *study) grainChart(title, unit string, figure func(outcome) float64) chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: title, Y: unit}}
	for _, o := range g.subjects {
		for _, n := range grains {
			p.Add(chart.Series{Name: shortName(o.name), Mark: chart.Joined}, n.name, figure(g.grain(o, n, fp8.E4M3).outcome))
		}
	}
	return p.Chart
}

// label returns the last two parts of an operand's name.
func label(o *operand) string {
	parts := strings.Split(shortName(o.name), ".")
	return strings.Join(parts[len(parts)-2:], " ")
}
