package outliers

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
)

// alignmentChart is of means over seeds and layers.
func (s *study) alignmentChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Branches of a neuron: median |cosine|", X: "step", Y: "|cosine|", Zero: true,
		Lines: []chart.Reference{{Name: "random directions", Value: cosineAtRandom(s.plan.dim)}},
	}}
	for _, line := range []struct {
		name   string
		of     func(seedFigures) []alignment
		figure func(alignment) float64
		dashed bool
	}{
		{"largest gains, weight decay", decayedOf, alignment.top, false},
		{"largest gains, none", freeOf, alignment.top, false},
		{"all neurons, weight decay", decayedOf, alignment.all, true},
		{"all neurons, none", freeOf, alignment.all, true},
	} {
		for look := range looks + 1 {
			at := look * s.plan.layers
			p.Add(chart.Series{Name: line.name, Mark: chart.Joined, Dashed: line.dashed}, line.of(s.seeds[0])[at].step,
				s.samples(func(f seedFigures) float64 { return meanOf(line.of(f)[at:at+s.plan.layers], line.figure) })...)
		}
	}
	return p.Chart
}

// amaxChart is of geometric means over seeds, of the layer with the largest.
func (s *study) amaxChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Largest input of a down projection", X: "step", Y: "|z|", LogY: true,
		Lines: []chart.Reference{{Name: "late scales stay from here on", Value: float64(s.plan.window), Vertical: true}}}}
	add := func(name string, of func(seedFigures) course) {
		for step := range 2 * s.plan.window {
			p.Add(chart.Series{Name: name}, step, factor(s.samples(func(f seedFigures) float64 {
				return math.Log2(max(0, slices.Max(of(f).amax[step])))
			})))
		}
	}
	add("fine-tuned", growingOf)
	add("training as before", calmOf)
	return p.Chart
}

// lookedAt returns the step of a look.
func (s *study) lookedAt(look int) int { return s.plan.window + (look+1)*s.plan.every - 1 }

func (s *study) errorChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Error of the down projection's output, fine-tuned", X: "step", Y: "share of its norm", LogY: true}}
	for i, a := range arms() {
		for look := range s.seeds[0].growing.arms {
			p.Add(chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.smooth}, s.lookedAt(look),
				factor(s.samples(func(f seedFigures) float64 { return math.Log2(f.growing.arms[look][i].output) })))
		}
	}
	return p.Chart
}

// gapChart is of losses of the same weights.
func (s *study) gapChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Held-out loss above that of FP32, of the same weights, fine-tuned: mean over seeds", X: "step", Y: "percent", Zero: true}}
	for i, a := range lossArms() {
		s.addGaps(&p, chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.smooth}, func(f seedFigures) []float64 { return f.growing.under[i] })
	}
	return p.Chart
}

// trainedChart is of losses of runs of their own.
func (s *study) trainedChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Held-out loss of runs above that of FP32, fine-tuned: mean over seeds", X: "step", Y: "percent", Zero: true}}
	for i, run := range s.seeds[0].runs {
		s.addGaps(&p, chart.Series{Name: run.name, Mark: chart.Joined}, func(f seedFigures) []float64 { return f.runs[i].heldOut })
	}
	return p.Chart
}

// addGaps adds a series of losses above those of FP32, by looks.
func (s *study) addGaps(p *report.Plot, of chart.Series, losses func(seedFigures) []float64) {
	for look := range losses(s.seeds[0]) {
		p.Add(of, s.lookedAt(look), s.samples(func(f seedFigures) float64 { return 100 * (losses(f)[look]/f.growing.heldOut[look] - 1) })...)
	}
}

func (s *study) tables() []report.Table {
	tables := []report.Table{s.armTable("fine-tuned", growingOf), s.armTable("calm", calmOf), s.lossTable(), s.seedTable()}
	if len(s.given) > 0 {
		tables = append(tables, s.givenTable())
	}
	return tables
}

// armTable shows what arms make of the same tensors.
func (s *study) armTable(name string, of func(seedFigures) course) report.Table {
	mean := func(figure func(fidelity) float64) func(arm) []float64 {
		return func(a arm) []float64 {
			return s.samples(func(f seedFigures) float64 { return of(f).mean(a.name, figure) })
		}
	}
	errors := func(a arm) []float64 {
		return s.samples(func(f seedFigures) float64 { return math.Log2(of(f).error(a.name)) })
	}
	saturated := mean(func(f fidelity) float64 { return 100 * f.saturated })
	return report.Fill(report.Table{
		Name: name, Title: map[string]string{
			"fine-tuned": "Inputs of down projections while late scales stay, fine-tuned: the same tensors in all ways, means over seeds",
			"calm":       "The same where training goes on as before",
		}[name],
	}, arms(), report.Cell("input", func(a arm) string { return a.name }),
		report.Cell("error of the output %", func(a arm) float64 { return 100 * factor(errors(a)) }),
		report.StandardError("standard error of its logarithm to base 2", errors),
		report.Cell("over that of the tensor just in time", func(a arm) float64 { return factor(s.ratio(of, a.name, plainNow)) }),
		report.Mean("saturated %", saturated), report.StandardError("standard error", saturated),
		report.Mean("flushed %", mean(func(f fidelity) float64 { return 100 * f.flushed })),
		report.Mean("largest input over what its scale holds", mean(func(f fidelity) float64 { return f.reach })))
}

// judgedLoss is a row of the table of losses.
type judgedLoss struct {
	name, what string
	gaps       []float64
}

func (s *study) lossTable() report.Table {
	var rows []judgedLoss
	for _, a := range lossArms() {
		rows = append(rows, judgedLoss{a.name, "the same weights", s.gaps(a.name)})
	}
	for _, run := range s.seeds[0].runs {
		rows = append(rows, judgedLoss{run.name, "a run of its own", s.trainedGaps(run.name)})
	}
	gaps := func(l judgedLoss) []float64 { return l.gaps }
	return report.Fill(report.Table{
		Name: "losses", Title: "Held-out loss above that of FP32, fine-tuned while late scales stay: means over seeds",
	}, rows,
		report.Cell("inputs of linear layers", func(l judgedLoss) string { return l.name }),
		report.Cell("", func(l judgedLoss) string { return l.what }),
		report.Mean("held-out loss above FP32 %", gaps), report.StandardError("standard error", gaps))
}

// seedTable has one value of each seed, of all that is judged.
func (s *study) seedTable() report.Table {
	t := report.Table{
		Name: "seeds", Title: "All values of all seeds", Raw: true,
		Columns: []string{"seed", "what", "value"},
	}
	for _, f := range s.seeds {
		for _, trained := range []struct {
			name string
			all  []alignment
		}{{"weight decay", f.decayed}, {"no decay", f.free}} {
			for _, a := range trained.all {
				at := fmt.Sprintf("%s, step %d, layer %d: ", trained.name, a.step, a.layer)
				t.Add(f.seed, at+"|cosine| of largest gains", a.cosineTop)
				t.Add(f.seed, at+"|cosine| of all", a.cosine)
				t.Add(f.seed, at+"largest |z|", a.amax)
				t.Add(f.seed, at+"root mean square of z", a.rms)
			}
		}
		for _, a := range arms() {
			t.Add(f.seed, "error of the output, fine-tuned: "+a.name, f.growing.error(a.name))
			t.Add(f.seed, "error of the output, calm: "+a.name, f.calm.error(a.name))
		}
		for _, a := range lossArms() {
			t.Add(f.seed, "held-out loss above FP32 %, the same weights: "+a.name, f.gap(a.name))
		}
		for _, run := range f.runs {
			t.Add(f.seed, "held-out loss above FP32 %, a run of its own: "+run.name, f.trainedGap(run.name))
		}
	}
	return t
}

func (s *study) givenTable() report.Table {
	t := report.Table{
		Name: "activations", Title: "Activations of --activations, second half of the tokens; delayed scales are from the first",
		Columns: []string{"layer", "largest |z| / median", "second half / first", "input", "signal to noise dB", "saturated %", "flushed %"},
	}
	for _, f := range s.given {
		for i, a := range arms() {
			t.Add(f.name, f.amax/f.median, f.halves, a.name, decibels(f.arms[i].input), 100*f.arms[i].saturated, 100*f.arms[i].flushed)
		}
	}
	return t
}
