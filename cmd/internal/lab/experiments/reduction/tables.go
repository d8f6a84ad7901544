package reduction

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/train"
)

func (r *study) worldTable() report.Table {
	t := report.Table{
		Name:    "worlds",
		Title:   "Every way of dividing, late in training",
		Columns: []string{"workers", "gradients", "format", "division", "factor", "underflow %", "overflow %", "error of the mean %", "bytes a value"},
	}
	for _, w := range r.worlds {
		t.Add(w.size, w.kind.name, w.way.format(), divisionNames[w.way.division], w.factor,
			100*w.underflow(), 100*w.overflow(), 100*w.err, w.bytes(r.run.Model.Params()))
	}
	return t
}

func (r *study) teamTable() report.Table {
	t := report.Table{
		Name:    "losses",
		Title:   fmt.Sprintf("Training with %d workers, their gradients reduced in different ways", r.team),
		Columns: []string{"reduction", "first loss", "mean loss of the last quarter", "above FP32 %"},
	}
	for _, k := range r.teams {
		t.Add(k.way.String(), k.losses[0], k.last, 100*r.excess(k))
	}
	return t
}

// tensorTable has a line for each tensor in the largest worlds.
func (r *study) tensorTable() report.Table {
	t := report.Table{
		Name: "tensors", Raw: true,
		Columns: []string{"workers", "gradients", "reduction", "tensor", "scale", "factor", "values", "flushed", "saturated", "saturated sums"},
	}
	for _, w := range r.worlds {
		if w.size != r.largest() || !w.way.fp8 {
			continue
		}
		for i, k := range w.tensors {
			t.Add(w.size, w.kind.name, w.way.String(), r.run.Model.Params()[i].Name, k.Scale, k.Factor,
				k.Encode.Elements, k.Encode.Flushed, k.Encode.Saturated(), k.Sum.Saturated())
		}
	}
	return t
}

func (r *study) factorTable() report.Table {
	t := report.Table{Name: "factors", Raw: true, Columns: []string{"workers", "gradients", "step", "factor"}}
	for _, w := range r.worlds {
		if w.way != auto {
			continue
		}
		for step, f := range w.factors {
			t.Add(w.size, w.kind.name, step, f)
		}
	}
	return t
}

func (r *study) lossTable() report.Table {
	t := report.Table{Name: "losses-steps", Raw: true, Columns: []string{"reduction", "step", "loss"}}
	for _, k := range r.teams {
		for step, loss := range k.losses {
			t.Add(k.way.String(), step, loss)
		}
	}
	return t
}

// worldChart shows a figure of FP8 over the number of workers.
func (r *study) worldChart(title string, figure func(*world) float64, lines ...chart.Reference) chart.Chart {
	c := chart.Chart{Title: title, X: "workers", Y: "percent", LogX: true, LogY: true, Lines: lines}
	for _, k := range kinds {
		c.Series = append(c.Series, r.worldSeries(k, k.name, figure)...)
	}
	return c
}

// worldSeries are a figure of all divisions.
func (r *study) worldSeries(k kind, name string, figure func(*world) float64) (all []chart.Series) {
	for division, divided := range divisionNames {
		s := chart.Series{Name: divided, Color: chart.Key(divided), Mark: chart.Joined, Dashed: k.name == alike.name}
		if name != "" {
			s.Name += ", " + name
		}
		for _, size := range r.scope.worlds {
			w := r.world(k, size, way{true, train.Division(division)})
			s.Points = append(s.Points, chart.Point{X: float64(size), Y: figure(w)})
		}
		all = append(all, s)
	}
	return all
}

// errorChart shows the error of the mean, and what independent roundings make of
// gradients that are not alike.
func (r *study) errorChart(k kind) chart.Chart {
	c := chart.Chart{
		Title: "Error of the mean in FP8, " + k.name, X: "workers", Y: "percent", LogX: true, LogY: true,
		Series: r.worldSeries(k, "", func(w *world) float64 { return 100 * w.err }),
	}
	if k.name == alike.name {
		return c
	}
	independent := chart.Series{Name: "independent roundings", Dashed: true}
	for _, size := range r.scope.worlds {
		independent.Points = append(independent.Points, chart.Point{X: float64(size), Y: 100 * independentError(size)})
	}
	c.Series = append(c.Series, independent)
	return c
}

// factorChart shows how automatic factors adapt.
func (r *study) factorChart() chart.Chart {
	c := chart.Chart{Title: "The automatic factor, median of tensors, " + sequences.name, X: "step", Y: "factor", LogY: true}
	for _, size := range r.scope.worlds {
		s := chart.Series{Name: fmt.Sprintf("%d workers", size), Mark: chart.Joined}
		for step, f := range r.world(sequences, size, auto).factors {
			s.Points = append(s.Points, chart.Point{X: float64(step), Y: f})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

func (r *study) sawtoothChart() chart.Chart {
	s := chart.Series{Name: "factor"}
	for step, f := range r.factors {
		s.Points = append(s.Points, chart.Point{X: float64(step), Y: f})
	}
	return chart.Chart{
		Title: fmt.Sprintf("The automatic factor of %d gradients that stay the same, %d workers", sawtoothValues, sawtoothWorkers),
		X:     "step", Y: "factor", LogY: true, Series: []chart.Series{s},
	}
}

func (r *study) lossChart() chart.Chart {
	c := chart.Chart{Title: fmt.Sprintf("Loss above that in FP32, %d workers", r.team), X: "step", Y: "percent", Zero: true, Smooth: true}
	for _, k := range r.teams[1:] {
		s := chart.Series{Name: k.way.String(), Color: chart.Key(divisionNames[k.way.division])}
		for step, loss := range k.losses {
			s.Points = append(s.Points, chart.Point{X: float64(step), Y: 100 * (loss/r.teams[0].losses[step] - 1)})
		}
		c.Series = append(c.Series, s)
	}
	return c
}
