package outliers

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

// alignmentChart is of means over seeds and layers.
func (s *study) alignmentChart() chart.Chart {
	c := chart.Chart{
		Title: "Branches of a neuron: median |cosine|", X: "step", Y: "|cosine|", Zero: true,
		Lines: []chart.Reference{{Name: "random directions", Value: cosineAtRandom(s.plan.dim)}},
	}
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
		series := chart.Series{Name: line.name, Mark: chart.Joined, Dashed: line.dashed}
		for look := range looks + 1 {
			at := look * s.plan.layers
			y := statistics.Mean(s.samples(func(f seedFigures) float64 {
				return meanOf(line.of(f)[at:at+s.plan.layers], line.figure)
			}))
			series.Points = append(series.Points, chart.Point{X: float64(line.of(s.seeds[0])[at].step), Y: y})
		}
		c.Series = append(c.Series, series)
	}
	return c
}

// windowLine is where late scales begin to stay.
func (s *study) windowLine() chart.Reference {
	return chart.Reference{Name: "late scales stay from here on", Value: float64(s.plan.window), Vertical: true}
}

// amaxChart is of geometric means over seeds, of the layer with the largest.
func (s *study) amaxChart() chart.Chart {
	c := chart.Chart{Title: "Largest input of a down projection", X: "step", Y: "|z|", LogY: true, Lines: []chart.Reference{s.windowLine()}}
	for _, of := range []struct {
		name string
		of   func(seedFigures) course
	}{{"fine-tuned", growingOf}, {"training as before", calmOf}} {
		series := chart.Series{Name: of.name}
		for step := range 2 * s.plan.window {
			y := factor(s.samples(func(f seedFigures) float64 {
				most := 0.0
				for _, amax := range of.of(f).amax[step] {
					most = max(most, amax)
				}
				return math.Log2(most)
			}))
			series.Points = append(series.Points, chart.Point{X: float64(step), Y: y})
		}
		c.Series = append(c.Series, series)
	}
	return c
}

// lookedAt returns the step of a look.
func (s *study) lookedAt(look int) float64 {
	return float64(s.plan.window + (look+1)*s.plan.every - 1)
}

func (s *study) errorChart() chart.Chart {
	c := chart.Chart{Title: "Error of the down projection's output, fine-tuned", X: "step", Y: "share of its norm", LogY: true}
	for i, a := range arms() {
		series := chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.smooth}
		for look := range s.seeds[0].growing.arms {
			y := factor(s.samples(func(f seedFigures) float64 { return math.Log2(f.growing.arms[look][i].output) }))
			series.Points = append(series.Points, chart.Point{X: s.lookedAt(look), Y: y})
		}
		c.Series = append(c.Series, series)
	}
	return c
}

// gapChart is of losses of the same weights.
func (s *study) gapChart() chart.Chart {
	c := chart.Chart{Title: "Held-out loss above that of FP32, of the same weights, fine-tuned: mean over seeds", X: "step", Y: "percent", Zero: true}
	for i, a := range lossArms() {
		series := chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.smooth}
		for look := range s.seeds[0].growing.heldOut {
			y := statistics.Mean(s.samples(func(f seedFigures) float64 {
				return 100 * (f.growing.under[i][look]/f.growing.heldOut[look] - 1)
			}))
			series.Points = append(series.Points, chart.Point{X: s.lookedAt(look), Y: y})
		}
		c.Series = append(c.Series, series)
	}
	return c
}

// trainedChart is of losses of runs of their own.
func (s *study) trainedChart() chart.Chart {
	c := chart.Chart{Title: "Held-out loss of runs above that of FP32, fine-tuned: mean over seeds", X: "step", Y: "percent", Zero: true}
	for i, run := range s.seeds[0].runs {
		series := chart.Series{Name: run.name, Mark: chart.Joined}
		for look := range run.heldOut {
			y := statistics.Mean(s.samples(func(f seedFigures) float64 {
				return 100 * (f.runs[i].heldOut[look]/f.growing.heldOut[look] - 1)
			}))
			series.Points = append(series.Points, chart.Point{X: s.lookedAt(look), Y: y})
		}
		c.Series = append(c.Series, series)
	}
	return c
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
	t := report.Table{
		Name: name, Title: map[string]string{
			"fine-tuned": "Inputs of down projections while late scales stay, fine-tuned: the same tensors in all ways, means over seeds",
			"calm":       "The same where training goes on as before",
		}[name],
		Columns: []string{
			"input", "error of the output %", "standard error of its logarithm to base 2", "over that of the tensor just in time",
			"saturated %", "standard error", "flushed %", "largest input over what its scale holds",
		},
	}
	for _, a := range arms() {
		mean := func(figure func(fidelity) float64) []float64 {
			return s.samples(func(f seedFigures) float64 { return of(f).mean(a.name, figure) })
		}
		errors := s.samples(func(f seedFigures) float64 { return math.Log2(of(f).error(a.name)) })
		saturated := mean(func(f fidelity) float64 { return 100 * f.saturated })
		_, ofErrors := statistics.Spread(errors)
		_, ofSaturated := statistics.Spread(saturated)
		t.Add(a.name, 100*factor(errors), ofErrors, factor(s.ratio(of, a.name, plainNow)),
			statistics.Mean(saturated), ofSaturated, statistics.Mean(mean(func(f fidelity) float64 { return 100 * f.flushed })),
			statistics.Mean(mean(func(f fidelity) float64 { return f.reach })))
	}
	return t
}

func (s *study) lossTable() report.Table {
	t := report.Table{
		Name: "losses", Title: "Held-out loss above that of FP32, fine-tuned while late scales stay: means over seeds",
		Columns: []string{"inputs of linear layers", "", "held-out loss above FP32 %", "standard error"},
	}
	add := func(name, what string, gaps []float64) {
		_, ofMean := statistics.Spread(gaps)
		t.Add(name, what, statistics.Mean(gaps), ofMean)
	}
	for _, a := range lossArms() {
		add(a.name, "the same weights", s.gaps(a.name))
	}
	for _, run := range s.seeds[0].runs {
		add(run.name, "a run of its own", s.trainedGaps(run.name))
	}
	return t
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
