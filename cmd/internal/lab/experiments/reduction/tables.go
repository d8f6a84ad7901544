package reduction

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/train"
)

func (s *study) worldTable() report.Table {
	t := report.Table{
		Name:    "worlds",
		Title:   "Every way of dividing, late in training: means over seeds",
		Columns: []string{"workers", "gradients", "format", "division", "seeds", "factor", "underflow %", "overflow %", "error of the mean %", "± %", "bytes a value"},
	}
	first := s.samples[0]
	for _, w := range first.worlds {
		of := func(figure func(*world) float64) float64 { return s.mean(w.kind, w.size, w.way, figure) }
		var ofMean float64
		if len(s.samples) > 1 {
			_, ofMean = statistics.Spread(s.of(w.kind, w.size, w.way, meanError))
		}
		t.Add(w.size, w.kind.name, w.way.format(), divisionNames[w.way.division], len(s.samples), of(factor),
			100*of(underflow), 100*of(overflow), 100*of(meanError), 100*ofMean, w.bytes(first.run.Model.Params()))
	}
	return t
}

func (s *study) teamTable() report.Table {
	t := report.Table{
		Name:    "losses",
		Title:   fmt.Sprintf("Training with %d workers, their gradients reduced in different ways", s.team),
		Columns: []string{"seed", "reduction", "first loss", "mean loss of the last quarter", "above FP32 %"},
	}
	for _, of := range s.samples {
		for _, k := range of.teams {
			t.Add(of.o.Seed, k.kind.name, k.losses[0], k.last(), of.excess(k))
		}
	}
	return t
}

// seedTable has a line for each world and seed.
func (s *study) seedTable() report.Table {
	t := report.Table{
		Name: "seeds", Raw: true,
		Columns: []string{"seed", "workers", "gradients", "reduction", "factor", "underflow %", "overflow %", "saturated a value %", "error of the mean %"},
	}
	for _, of := range s.samples {
		for _, w := range of.worlds {
			t.Add(of.o.Seed, w.size, w.kind.name, w.way.String(), w.factor, 100*w.underflow(), 100*w.overflow(), saturatedLast(w), 100*w.err)
		}
	}
	return t
}

// tensorTable has a line for each tensor in the largest worlds.
func (s *study) tensorTable() report.Table {
	t := report.Table{
		Name: "tensors", Raw: true,
		Columns: []string{"seed", "workers", "gradients", "reduction", "tensor", "scale", "factor", "values", "flushed", "saturated", "saturated sums"},
	}
	for _, of := range s.samples {
		for _, w := range of.worlds {
			if w.size != s.largest() || !w.way.fp8 {
				continue
			}
			for i, k := range w.tensors {
				t.Add(of.o.Seed, w.size, w.kind.name, w.way.String(), of.run.Model.Params()[i].Name, k.Scale, k.Factor,
					k.Encode.Elements, k.Encode.Flushed, k.Encode.Saturated(), k.Sum.Saturated())
			}
		}
	}
	return t
}

func (s *study) factorTable() report.Table {
	t := report.Table{Name: "factors", Raw: true, Columns: []string{"seed", "workers", "gradients", "step", "factor", "saturated a value %"}}
	for _, of := range s.samples {
		for _, w := range of.worlds {
			if w.way != auto {
				continue
			}
			for step, f := range w.factors {
				t.Add(of.o.Seed, w.size, w.kind.name, step, f, 100*w.saturated[step])
			}
		}
	}
	return t
}

func (s *study) lossTable() report.Table {
	t := report.Table{Name: "losses-steps", Raw: true, Columns: []string{"seed", "reduction", "step", "loss"}}
	for _, of := range s.samples {
		for _, k := range of.teams {
			for step, loss := range k.losses {
				t.Add(of.o.Seed, k.kind.name, step, loss)
			}
		}
	}
	return t
}

// worldChart shows a share over the number of workers, in percent.
func (s *study) worldChart(title string, figure func(*world) float64, lines ...chart.Reference) chart.Chart {
	c := chart.Chart{Title: title, X: "workers", Y: "percent", LogX: true, LogY: true, Lines: lines}
	for _, k := range kinds {
		c.Series = append(c.Series, s.worldSeries(k, k.name, figure)...)
	}
	return c
}

// worldSeries are a share for all divisions.
func (s *study) worldSeries(k kind, name string, figure func(*world) float64) (all []chart.Series) {
	for division, divided := range divisionNames {
		line := chart.Series{Name: divided, Color: chart.Key(divided), Mark: chart.Joined, Dashed: k.name == alike.name}
		if name != "" {
			line.Name += ", " + name
		}
		for _, size := range s.scope.worlds {
			y := s.mean(k, size, way{true, train.Division(division)}, figure)
			line.Points = append(line.Points, chart.Point{X: float64(size), Y: 100 * y})
		}
		all = append(all, line)
	}
	return all
}

// errorChart shows the error of the mean, and what independent roundings make of
// gradients that are not alike.
func (s *study) errorChart(k kind) chart.Chart {
	c := chart.Chart{
		Title: "Error of the mean in FP8, " + k.name, X: "workers", Y: "percent", LogX: true, LogY: true,
		Series: s.worldSeries(k, "", meanError),
	}
	if k.name == alike.name {
		return c
	}
	independent := chart.Series{Name: "independent roundings", Dashed: true}
	for _, size := range s.scope.worlds {
		independent.Points = append(independent.Points, chart.Point{X: float64(size), Y: 100 * independentError(size)})
	}
	c.Series = append(c.Series, independent)
	return c
}

// factorChart shows how automatic factors adapt in the first sample.
func (s *study) factorChart() chart.Chart {
	c := chart.Chart{Title: "The automatic factor, median of tensors, " + sequences.name + ", first seed", X: "step", Y: "factor", LogY: true}
	for _, size := range s.scope.worlds {
		line := chart.Series{Name: fmt.Sprintf("%d workers", size), Mark: chart.Joined}
		for step, f := range s.samples[0].world(sequences, size, auto).factors {
			line.Points = append(line.Points, chart.Point{X: float64(step), Y: f})
		}
		c.Series = append(c.Series, line)
	}
	return c
}

// lossChart shows the losses of the first sample.
func (s *study) lossChart() chart.Chart {
	c := chart.Chart{Title: fmt.Sprintf("Loss above that in FP32, %d workers, first seed", s.team), X: "step", Y: "percent", Zero: true, Smooth: true}
	teams := s.samples[0].teams
	for _, k := range teams[1:] {
		line := chart.Series{Name: k.kind.name, Color: chart.Key(k.kind.name)}
		for step, loss := range k.losses {
			line.Points = append(line.Points, chart.Point{X: float64(step), Y: 100 * (loss/teams[0].losses[step] - 1)})
		}
		c.Series = append(c.Series, line)
	}
	return c
}
