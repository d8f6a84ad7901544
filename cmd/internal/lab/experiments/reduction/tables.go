package reduction

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

func (s *study) worldTable() report.Table {
	of := func(figure func(*world) float64) func(*world) []float64 {
		return func(w *world) []float64 { return s.of(w.kind, w.size, w.way, figure) }
	}
	percent := func(name string, figure func(*world) float64) report.Column[*world] {
		return report.Cell(name, func(w *world) float64 { return 100 * statistics.Mean(of(figure)(w)) })
	}
	first := s.samples[0]
	return report.Fill(report.Table{Name: "worlds", Title: "Every way of dividing, late in training: means over seeds"}, first.worlds,
		report.Cell("workers", func(w *world) int { return w.size }), report.Cell("gradients", func(w *world) string { return w.kind.name }),
		report.Cell("format", func(w *world) string { return w.way.format() }),
		report.Cell("division", func(w *world) string { return divisionNames[w.way.division] }),
		report.Cell("seeds", func(*world) int { return len(s.samples) }), report.Mean("factor", of(factor)),
		percent("underflow %", underflow), percent("overflow %", overflow), percent("error of the mean %", meanError),
		report.StandardError("± %", of(func(w *world) float64 { return 100 * w.err })),
		report.Cell("bytes a value", func(w *world) float64 { return w.bytes(first.run.Model.Params()) }))
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

// curves are the losses of teams.
func (s *study) curves() (all report.Curves) {
	for _, of := range s.samples {
		for _, k := range of.teams {
			all = append(all, report.Curve{Seed: of.o.Seed, Arm: k.kind.name, Values: k.losses})
		}
	}
	return all
}

// worldChart shows a share over the number of workers, in percent.
func (s *study) worldChart(title string, figure func(*world) float64, lines ...chart.Reference) chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: title, X: "workers", Y: "percent", LogX: true, LogY: true, Lines: lines}}
	for _, k := range kinds {
		s.addWorlds(&p, k, ", "+k.name, figure)
	}
	return p.Chart
}

// addWorlds adds a share for all divisions, whose names a text follows.
func (s *study) addWorlds(p *report.Plot, k kind, name string, figure func(*world) float64) {
	for division, divided := range divisionNames {
		for _, size := range s.scope.worlds {
			p.Add(chart.Series{Name: divided + name, Color: chart.Key(divided), Mark: chart.Joined, Dashed: k.name == alike.name},
				size, 100*s.mean(k, size, way{true, collective.Division(division)}, figure))
		}
	}
}

// errorChart shows the error of the mean, and what independent roundings make of
// gradients that are not alike.
func (s *study) errorChart(k kind) chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Error of the mean in FP8, " + k.name, X: "workers", Y: "percent", LogX: true, LogY: true}}
	s.addWorlds(&p, k, "", meanError)
	if k.name == alike.name {
		return p.Chart
	}
	for _, size := range s.scope.worlds {
		p.Add(chart.Series{Name: "independent roundings", Dashed: true}, size, 100*independentError(size))
	}
	return p.Chart
}

// factorChart shows how automatic factors adapt in the first sample.
func (s *study) factorChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "The automatic factor, median of tensors, " + sequences.name + ", first seed", X: "step", Y: "factor", LogY: true}}
	for _, size := range s.scope.worlds {
		for step, f := range s.samples[0].world(sequences, size, auto).factors {
			p.Add(chart.Series{Name: fmt.Sprintf("%d workers", size), Mark: chart.Joined}, step, f)
		}
	}
	return p.Chart
}

// lossChart shows the losses of the first sample.
func (s *study) lossChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: fmt.Sprintf("Loss above that in FP32, %d workers, first seed", s.team), X: "step", Y: "percent", Zero: true, Smooth: true}}
	first := s.curves().OfSeed(s.samples[0].o.Seed)
	for _, k := range teamKinds[1:] {
		p.AddCurves(first.Above(k.name, teamKinds[0].name), chart.Series{Name: k.name, Color: chart.Key(k.name)})
	}
	return p.Chart
}
