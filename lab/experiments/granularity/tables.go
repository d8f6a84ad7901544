package granularity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/scaling"
)

func (g *study) tables() []report.Table {
	return []report.Table{g.schemeTable(), g.ratioTable(), g.profileTable(), g.amaxTable(), g.recipeTable(), g.amaxSteps(), g.schemeSteps()}
}

func (g *study) schemeTable() report.Table {
	t := report.Table{
		Name:    "scales",
		Title:   "Scales just in time and from the past, max/amax in E4M3, all steps measured",
		Columns: []string{"operand", "scale", "saturated %", "blocks with saturated values %", "nonzero values flushed %", "SQNR dB"},
	}
	for _, k := range g.tracks {
		t.Add(shortName(k.of.name), k.scheme.name, 100*k.saturatedShare(), 100*k.saturatedBlocks(), 100*k.flushedShare(), k.sqnr())
	}
	return t
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

// recipeTable has a line for each tensor, recipe and format.
func (g *study) recipeTable() report.Table {
	t := report.Table{
		Name: "recipes", Raw: true,
		Columns: []string{"tensor", "profile", "block", "format", "SQNR dB", "nonzero values flushed %", "saturated %", "scale bytes a value"},
	}
	for _, e := range slices.Concat(g.profiles, g.grains) {
		t.Add(shortName(e.of.name), string(e.recipe.Profile), e.recipe.Block.String(), e.recipe.Format.String(),
			e.sqnr(), 100*e.flushedShare(), 100*e.saturatedShare(), e.scaleBytes)
	}
	return t
}

func (g *study) amaxTable() report.Table {
	t := report.Table{
		Name:  "amax",
		Title: "Amax of every operand over training: by tensor, and of its blocks",
		Columns: []string{"operand", "blocks", "first step", "last", "least", "most", "blocks' range, binades",
			"all zero %", "below 1e-4 %", "subnormal under the tensor's scale %", "flushed under it %"},
	}
	for _, s := range summarize(g.seen) {
		t.Add(shortName(s.name), s.blocks, s.first, s.last, s.least, s.most, s.binades, 100*s.zeros, 100*s.clamped, 100*s.subnormals, 100*s.lost)
	}
	return t
}

func (g *study) amaxSteps() report.Table {
	t := report.Table{
		Name: "amax-steps", Raw: true,
		Columns: []string{"step", "operand", "blocks", "all zero", "amax of the tensor", "quantile 0.95 of blocks", "0.5", "0.05", "least above 0"},
	}
	for _, a := range g.seen {
		t.Add(a.step, shortName(a.name), a.blocks(), a.zeros, a.ofTensor(), statistics.Quantile(a.sorted, 0.95), statistics.Quantile(a.sorted, 0.5), statistics.Quantile(a.sorted, 0.05), statistics.Quantile(a.sorted, 0))
	}
	return t
}

func (g *study) schemeSteps() report.Table {
	t := report.Table{
		Name: "scales-steps", Raw: true,
		Columns: []string{"step", "operand", "scale", "saturated %", "blocks with saturated values %", "nonzero values flushed %", "SQNR dB"},
	}
	for _, k := range g.tracks {
		for _, at := range k.points {
			t.Add(at.step, shortName(k.of.name), k.scheme.name, 100*at.saturatedShare(), 100*at.saturatedBlocks(), 100*at.flushedShare(), at.sqnr())
		}
	}
	return t
}

func (g *study) charts() []chart.Chart {
	product, gradient := g.operand(compared[0]), g.operand(compared[2])
	return []chart.Chart{
		g.amaxChart(),
		g.blockChart(product), g.blockChart(gradient),
		g.ratioChart(),
		g.schemeChart("SQNR by when the scale is known", "dB", outcome.sqnr),
		g.schemeChart("Values that saturate", "percent", func(o outcome) float64 { return 100 * o.saturatedShare() }),
		g.overTraining(product), g.overTraining(gradient),
		g.grainChart("SQNR by granularity, max/amax in E4M3", "dB", outcome.sqnr),
		g.grainChart("Nonzero values that become 0, by granularity", "percent", func(o outcome) float64 { return 100 * o.flushedShare() }),
	}
}

func (g *study) amaxChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Amax per tensor", X: "step", Y: "amax", LogY: true}}
	for _, o := range g.operands {
		for _, a := range g.watchedOf(o) {
			p.Add(operandSeries(o), a.step, a.ofTensor())
		}
	}
	return p.Chart
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

// ratioChart shows how the ratios to the last step are distributed.
func (g *study) ratioChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "A block's amax over that of the last step", X: "percent of blocks below", Y: "ratio", LogY: true,
		Lines: []chart.Reference{{Name: "room of the scale", Value: roomInE4M3}}}}
	for _, o := range g.operands {
		sorted := slices.Sorted(slices.Values(g.track(o, blockLast).ratios))
		for percent := 1.0; percent <= 99; percent++ {
			p.Add(operandSeries(o), percent, statistics.Quantile(sorted, percent/100))
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
