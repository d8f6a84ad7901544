package outliers

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
)

// stepSeries shows a figure of a run over its steps.
func (s *study) stepSeries(r *continuation, mark chart.Mark, figure func(step int) float64) chart.Series {
	series := chart.Series{Name: r.name, Mark: mark, Dashed: r == s.runs[blockRun]} // which often lies on another
	for i := range r.steps {
		if v := figure(i); !math.IsNaN(v) {
			series.Points = append(series.Points, chart.Point{X: float64(i), Y: v})
		}
	}
	return series
}

// overSteps is a chart of what happens in the steps of all runs, with lines at what is done
// to them.
func (s *study) overSteps(title, unit string, lines ...chart.Reference) chart.Chart {
	at := func(step int, what string) chart.Reference {
		return chart.Reference{Name: what, Value: float64(step), Vertical: true}
	}
	w := s.plan.window
	lines = append(lines, at(w, "gains begin to grow"), at(w+s.plan.growth, "have grown"), at(2*w, "late scales are refreshed"))
	return chart.Chart{Title: title, X: "step", Y: unit, Lines: lines}
}

func (s *study) heldOutChart() chart.Chart {
	c := s.overSteps("Held-out loss above that of FP32", "percent")
	c.Zero = true
	for _, r := range s.runs[delayedRun:] {
		c.Series = append(c.Series, s.stepSeries(r, chart.Joined, func(i int) float64 { return r.gap(s.runs[fp32Run], i, heldOutOf) }))
	}
	return report.WithLimit(c, fmt.Sprintf("%v %%, allowed", lossAllowed), lossAllowed)
}

func (s *study) trainingChart() chart.Chart {
	c := s.overSteps("Training loss above that of FP32 on the same batch", "percent")
	c.Zero = true
	for _, r := range s.runs[delayedRun:] {
		c.Series = append(c.Series, s.stepSeries(r, chart.Line, func(i int) float64 { return r.gap(s.runs[fp32Run], i, trainingOf) }))
	}
	return report.WithLimit(c, fmt.Sprintf("%v %%, allowed in held-out loss", lossAllowed), lossAllowed)
}

func (s *study) amaxChart() chart.Chart {
	c := s.overSteps("Largest input of a down projection, and what its scale can hold", "|z|, smoothed where it is")
	c.LogY = true
	for _, i := range []int{delayedRun, channelRun, tokenRun} {
		r := s.runs[i]
		c.Series = append(c.Series, s.stepSeries(r, chart.Line, func(i int) float64 { return r.steps[i].amax }))
		limit := s.stepSeries(r, chart.Line, func(i int) float64 { return r.steps[i].limit })
		limit.Name, limit.Color, limit.Dashed = r.name+", limit", chart.Key(r.name), true
		c.Series = append(c.Series, limit)
	}
	return c
}

func (s *study) reachChart() chart.Chart {
	c := s.overSteps("Largest input of a down projection over what its scale holds", "ratio", chart.Reference{Name: "saturates above", Value: 1})
	c.LogY = true
	for _, r := range s.runs[delayedRun:] { // FP32 has no scale
		c.Series = append(c.Series, s.stepSeries(r, chart.Line, func(i int) float64 { return r.steps[i].reach() }))
	}
	return c
}

func (s *study) saturatedChart() chart.Chart {
	c := s.overSteps("Saturated share of a down projection's input", "percent")
	c.Zero = true
	var never []string
	for _, r := range s.runs[delayedRun:] {
		if r.saturatedSteps() == 0 {
			never = append(never, r.name)
			continue
		}
		c.Series = append(c.Series, s.stepSeries(r, chart.Line, func(i int) float64 { return 100 * r.steps[i].saturated }))
	}
	if len(never) > 0 {
		c.Description = "The share by step of the runs in which a value saturates. In the others none does: " + strings.Join(never, ", ") + "."
	}
	return c
}

// about is what the colour of a way in smoothings stands for: that of the run which is
// smoothed in it and has late scales.
func (s *study) about(smoothing int) chart.Key {
	return chart.Key(s.runs[[]int{delayedRun, channelRun, tokenRun}[smoothing]].name)
}

func (s *study) lawChart() chart.Chart {
	c := chart.Chart{Title: "Largest |z| of aligned neurons: plain SwiGLU, and Smooth-SwiGLU", X: "gain", Y: "|z|", LogX: true, LogY: true}
	for i, how := range smoothings {
		series := chart.Series{Name: how.name, Color: s.about(i), Mark: chart.Joined}
		for _, f := range s.law {
			series.Points = append(series.Points, chart.Point{X: f.gain, Y: f.amax[i]})
		}
		c.Series = append(c.Series, series)
	}
	return c
}

func (s *study) jumpChart() chart.Chart {
	c := chart.Chart{Title: "Gains that have grown since the last refresh: held-out loss above FP32", X: "gain", Y: "percent", LogX: true, Zero: true}
	for i, j := range s.jumps[1:] {
		series := chart.Series{Name: j.name, Mark: chart.Joined}
		if i < 2*len(smoothings) { // without margin, and then with
			series.Color, series.Dashed = s.about(i%len(smoothings)), i >= len(smoothings)
		}
		for gain, at := range j.at {
			series.Points = append(series.Points, chart.Point{X: at.gain, Y: s.jumpGap(i+1, gain)})
		}
		c.Series = append(c.Series, series)
	}
	return c
}

func (s *study) channelChart() chart.Chart {
	c := chart.Chart{Title: "Activations " + s.whose() + ": largest |z| of each channel", X: "channels, the largest first", Y: "|z|", LogX: true, LogY: true}
	for _, f := range s.real {
		series := chart.Series{Name: f.name}
		for i, amax := range f.channels {
			series.Points = append(series.Points, chart.Point{X: float64(i + 1), Y: amax})
		}
		c.Series = append(c.Series, series)
	}
	return c
}

func (s *study) signalChart() chart.Chart {
	c := chart.Chart{
		Title: fmt.Sprintf("Activations %s, a channel's gain grown to %d: signal to noise", s.whose(), grownGain),
		Y:     "dB",
		Lines: []chart.Reference{{Name: "rounding to E4M3", Value: signalOfE4M3}, {Name: "lost below", Value: signalLost}},
	}
	for _, f := range s.real {
		c.Labels = append(c.Labels, f.name)
	}
	schemes := realSchemes()
	for i, scheme := range schemes {
		grown := chart.Series{Name: scheme.name, Mark: chart.Joined}
		if i < len(smoothings) {
			grown.Color = s.about(i)
		}
		for layer, f := range s.real {
			grown.Points = append(grown.Points, chart.Point{X: float64(layer), Y: f.grown[i].sqnr})
		}
		c.Series = append(c.Series, grown)
	}
	asIs := chart.Series{Name: smoothings[0].name + ", as they are", Color: s.about(0), Dashed: true}
	for layer, f := range s.real {
		asIs.Points = append(asIs.Points, chart.Point{X: float64(layer), Y: f.asIs[0].sqnr})
	}
	c.Series = append(c.Series, asIs)
	return c
}

func (s *study) runTable() report.Table {
	t := report.Table{
		Name: "runs", Title: "All runs, from the same weights on the same batches",
		Columns: []string{
			"run", "largest input over what its scale holds", "saturated %", "steps with saturation", "flushed %", "saturated elsewhere %",
			"gap while late %", "gap after refresh %", "gap at the end %",
		},
	}
	fp32 := s.runs[fp32Run]
	after := func(step int) bool { return step >= 2*s.plan.window }
	for _, r := range s.runs[1:] {
		t.Add(r.name, r.largest(anyStep, stepFigures.reach), 100*r.largest(anyStep, saturatedOf), r.saturatedSteps(),
			100*r.largest(anyStep, flushedOf), 100*r.largest(anyStep, elsewhereOf),
			r.largestGap(fp32, s.plan.late), r.largestGap(fp32, after), r.lastGap(fp32))
	}
	return t
}

func (s *study) jumpTable() report.Table {
	t := report.Table{
		Name: "jumps", Title: "Gains that have grown since the last refresh, without training",
		Columns: []string{"", "gain", "held-out loss", "above FP32 %", "largest input over what its scale holds", "saturated %"},
	}
	for i, j := range s.jumps {
		for gain, at := range j.at {
			reach := at.reach
			if i == fp32Run {
				reach = 0
			}
			t.Add(j.name, at.gain, at.loss, s.jumpGap(i, gain), reach, 100*at.saturated)
		}
	}
	return t
}

func (s *study) naturalTable() report.Table {
	t := report.Table{
		Name: "alignment", Title: "Branches and activations in normal training",
		Columns: []string{"steps", "layer", "median |cosine|", "of the largest gains", "at random", "largest |z|", "median |z|"},
	}
	for _, n := range s.natural {
		t.Add(n.step, n.layer, n.cosine, n.cosineTop, cosineAtRandom(s.plan.dim), n.amax, n.median)
	}
	return t
}

func (s *study) lawTable() report.Table {
	t := report.Table{Name: "gain", Title: "Largest |z| of aligned neurons, plain and with Smooth-SwiGLU", Columns: []string{"gain"}}
	for _, how := range smoothings {
		t.Columns = append(t.Columns, how.name)
	}
	for _, f := range s.law {
		row := []any{f.gain}
		for _, amax := range f.amax {
			row = append(row, amax)
		}
		t.Add(row...)
	}
	return t
}

func (s *study) realTable() report.Table {
	t := report.Table{
		Name: "activations", Title: "Activations " + s.whose() + ", second half of the tokens; delayed scales are from the first",
		Columns: []string{"layer", "largest |z| / median", "second half / first", "", "gain of a channel", "signal to noise dB", "saturated %", "flushed %"},
	}
	for _, f := range s.real {
		for i, scheme := range realSchemes() {
			t.Add(f.name, f.amax/f.median, f.halves, scheme.name, 1, f.asIs[i].sqnr, 100*f.asIs[i].saturated, 100*f.asIs[i].flushed)
			t.Add(f.name, f.amax/f.median, f.halves, scheme.name, grownGain, f.grown[i].sqnr, 100*f.grown[i].saturated, 100*f.grown[i].flushed)
		}
	}
	return t
}

func (s *study) curveTable() report.Table {
	t := report.Table{
		Name: "steps", Title: "All steps of all runs", Raw: true,
		Columns: []string{"run", "step", "training loss", "held-out loss", "largest input", "limit", "saturated %", "flushed %", "saturated elsewhere %"},
	}
	for _, r := range s.runs {
		for i, at := range r.steps {
			t.Add(r.name, i, at.loss, at.heldOut, at.amax, at.limit, 100*at.saturated, 100*at.flushed, 100*at.elsewhere)
		}
	}
	return t
}
