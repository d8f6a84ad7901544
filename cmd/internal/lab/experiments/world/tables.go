package world

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/train/world"
)

func (s *study) tables() []report.Table {
	return []report.Table{
		s.routeTable(), s.sumTable(), s.sliceTable(), s.teamTable(),
		s.routeSeeds(), s.sumSeeds(), s.sliceSeeds(), s.teamSeeds(), s.lossTable(),
	}
}

// mean is that of a figure over seeds.
func (s *study) mean(figure func(*sample) float64) float64 { return statistics.Mean(s.bySeed(figure)) }

func (s *study) routeTable() report.Table {
	t := report.Table{
		Name: "tokens", Title: "Tokens sent to experts and back: means over seeds; errors are distances from FP32 everywhere, over its length",
		Columns: []string{"experts", "to experts", "back", "error of output %", "error of gradients %", "held-out loss", "above BF16 both ways %"},
	}
	for i, k := range routeKinds {
		base := bothBF16
		if k.experts == expertsInFP32 {
			base.experts = expertsInFP32
		}
		of := func(figure func(*route) float64) float64 {
			return s.mean(func(of *sample) float64 { return figure(of.routes[i+1]) })
		}
		t.Add(k.experts, k.dispatch, k.combine, 100*of(outputError), 100*of(gradientError),
			of(func(r *route) float64 { return r.loss }), statistics.Mean(s.lossAbove(k, base)))
	}
	return t
}

func (s *study) routeSeeds() report.Table {
	t := report.Table{
		Name: "tokens-seeds", Raw: true,
		Columns: []string{"seed", "experts", "to experts", "back", "error of output %", "error of gradients %", "held-out loss"},
	}
	for _, of := range s.samples {
		for _, r := range of.routes {
			t.Add(of.o.Seed, r.kind.experts, r.kind.dispatch, r.kind.combine, 100*r.output, 100*r.gradient, r.loss)
		}
	}
	return t
}

// sumTable has the sums over the most ranks.
func (s *study) sumTable() report.Table {
	t := report.Table{
		Name:    "sums",
		Title:   fmt.Sprintf("Gradients summed over %s ranks, by simulation of the sum alone: means over seeds; scatter is a reduce-scatter and an all-gather", report.Whole(float64(s.most()))),
		Columns: []string{"gradients", "format", "order", "error %", "bias %", "largest error of magnitudes", "changed %"},
	}
	for _, k := range s.samples[0].sums {
		if k.ranks != s.most() || k.operands == measured {
			continue
		}
		of := func(figure func(world.SumError) float64) float64 {
			return s.mean(func(of *sample) float64 { return figure(of.sumOf(k.operands, k.ranks, k.order, k.format)) })
		}
		t.Add(k.operands, k.format.name, k.order.String(),
			of(func(e world.SumError) float64 { return 100 * e.RMS }), of(func(e world.SumError) float64 { return 100 * e.Bias }),
			of(func(e world.SumError) float64 { return e.Max }), of(func(e world.SumError) float64 { return 100 * e.Changed }))
	}
	return t
}

func (s *study) sumSeeds() report.Table {
	t := report.Table{
		Name: "sums-seeds", Raw: true,
		Columns: []string{"seed", "gradients", "ranks", "format", "order", "error %", "bias %", "largest error of magnitudes", "changed %", "not finite"},
	}
	for _, of := range s.samples {
		for _, k := range of.sums {
			t.Add(of.o.Seed, k.operands, k.ranks, k.format.name, k.order.String(), 100*k.err.RMS, 100*k.err.Bias, k.err.Max, 100*k.err.Changed, k.err.NonFinite)
		}
	}
	return t
}

func slicing(fixed bool) string {
	if fixed {
		return fmt.Sprintf("%d, always", sliceCount)
	}
	return "as many as ranks"
}

func (s *study) sliceTable() report.Table {
	t := report.Table{
		Name:    "slices",
		Title:   fmt.Sprintf("A layer after %d steps on ranks that share K, beside its twin on one: outputs, gradients of inputs and weights of all seeds", s.sliceSteps),
		Columns: []string{"products and sums", "slices", "ranks", "values", "differ", "differ %", "apart %", "bytes sent"},
	}
	for i, l := range s.samples[0].slices {
		elements, differ := 0, 0
		for _, of := range s.samples {
			elements, differ = elements+of.slices[i].elements, differ+of.slices[i].differ
		}
		t.Add(l.kind.name, slicing(l.fixed), l.ranks, elements, differ, 100*float64(differ)/float64(elements),
			s.mean(func(of *sample) float64 { return 100 * of.slices[i].apart }), l.bytes)
	}
	return t
}

func (s *study) sliceSeeds() report.Table {
	t := report.Table{
		Name: "slices-seeds", Raw: true,
		Columns: []string{"seed", "products and sums", "slices", "ranks", "values", "differ", "apart %"},
	}
	for _, of := range s.samples {
		for _, l := range of.slices {
			t.Add(of.o.Seed, l.kind.name, slicing(l.fixed), l.ranks, l.elements, l.differ, 100*l.apart)
		}
	}
	return t
}

// reference is the name of the team that a team is compared with.
func (k teamKind) reference() string {
	switch {
	case k.delayed:
		return amaxOnTime
	case k.e4m3:
		return sumShared
	}
	return gatherFP32
}

func (s *study) teamTable() report.Table {
	t := report.Table{
		Name:    "teams",
		Title:   fmt.Sprintf("%d ranks trained under stage 3 of ZeRO for %d steps: means over seeds", teamRanks, s.teamSteps),
		Columns: []string{"team", "mean loss of the last quarter", "compared with", "above it %", "± %", "saturated in products, of a million", "saturated in sums, of a million", "bytes a rank sends in a step"},
	}
	for i, k := range teamKinds {
		of := func(figure func(*team) float64) float64 {
			return s.mean(func(of *sample) float64 { return figure(of.teams[i]) })
		}
		above := s.above(k.name, k.reference())
		var ofMean float64
		if len(above) > 1 {
			_, ofMean = statistics.Spread(above)
		}
		t.Add(k.name, of((*team).last), k.reference(), statistics.Mean(above), ofMean,
			of(func(t *team) float64 { return 1e6 * t.saturated }), of(func(t *team) float64 { return 1e6 * t.summed }),
			of(func(t *team) float64 { return t.bytes }))
	}
	return t
}

func (s *study) teamSeeds() report.Table {
	t := report.Table{
		Name: "teams-seeds", Raw: true,
		Columns: []string{"seed", "team", "mean loss of the last quarter", "above what it is compared with %", "saturated in products", "saturated in sums"},
	}
	for _, of := range s.samples {
		for _, k := range of.teams {
			t.Add(of.o.Seed, k.kind.name, k.last(), of.above(k.kind.name, k.kind.reference()), k.saturated, k.summed)
		}
	}
	return t
}

func (s *study) lossTable() report.Table {
	t := report.Table{Name: "teams-steps", Raw: true, Columns: []string{"seed", "team", "step", "loss"}}
	for _, of := range s.samples {
		for _, k := range of.teams {
			for step, loss := range k.losses {
				t.Add(of.o.Seed, k.kind.name, step, loss)
			}
		}
	}
	return t
}

func (s *study) charts() []chart.Chart {
	return []chart.Chart{
		s.routeChart(), s.sumChart(withMean), s.sumChart(noise), s.sliceChart(), s.teamChart(),
	}
}

// routeChart shows errors by way.
func (s *study) routeChart() chart.Chart {
	c := chart.Chart{Title: "Tokens sent to experts and back: error beside FP32 everywhere", X: "experts: there, back", Y: "percent", Zero: true}
	output := chart.Series{Name: "output of experts", Mark: chart.Dots}
	gradient := chart.Series{Name: "gradients of all weights", Mark: chart.Rings}
	for i, k := range routeKinds {
		c.Labels = append(c.Labels, fmt.Sprintf("%s: %s, %s", k.experts, k.dispatch, k.combine))
		at := func(figure func(*route) float64) chart.Point {
			return chart.Point{X: float64(i), Y: s.mean(func(of *sample) float64 { return 100 * figure(of.routes[i+1]) })}
		}
		output.Points = append(output.Points, at(outputError))
		gradient.Points = append(gradient.Points, at(gradientError))
	}
	c.Series = []chart.Series{output, gradient}
	return c
}

// sumChart shows the error of sums over the number of ranks, of a tree and of a ring.
func (s *study) sumChart(operands string) chart.Chart {
	c := chart.Chart{
		Title: "Error of a sum of gradients, simulated: " + operands, X: "ranks", Y: "percent", LogX: true, LogY: true,
	}
	for _, order := range []world.Order{world.OrderTree, world.OrderRing} {
		for _, f := range sumFormats {
			line := chart.Series{
				Name: fmt.Sprintf("%s, %v", f.name, order), Color: chart.Key(f.name), Mark: chart.Joined,
				Dashed: order == world.OrderRing,
			}
			for _, ranks := range s.scope.sums {
				y := s.mean(func(of *sample) float64 { return 100 * of.sumOf(operands, ranks, order, f).RMS })
				line.Points = append(line.Points, chart.Point{X: float64(ranks), Y: y})
			}
			c.Series = append(c.Series, line)
		}
	}
	return c
}

// sliceChart shows which share of results is not that of one rank.
func (s *study) sliceChart() chart.Chart {
	c := chart.Chart{Title: "Results of a layer that are not those of one rank", X: "ranks that share K", Y: "percent", LogX: true, Zero: true}
	for _, kind := range slicedKinds {
		for _, fixed := range []bool{true, false} {
			line := chart.Series{
				Name: kind.name + ", slices: " + slicing(fixed), Color: chart.Key(kind.name), Mark: chart.Joined, Dashed: fixed,
			}
			for i, ranks := range slicedRanks {
				y := s.mean(func(of *sample) float64 {
					l := of.slicedOf(kind, fixed)[i]
					return 100 * float64(l.differ) / float64(l.elements)
				})
				line.Points = append(line.Points, chart.Point{X: float64(ranks), Y: y})
			}
			c.Series = append(c.Series, line)
		}
	}
	return c
}

// teamChart shows the losses of the first sample beside those that they are compared with.
func (s *study) teamChart() chart.Chart {
	c := chart.Chart{Title: fmt.Sprintf("Loss above what it is compared with, %d ranks, first seed", teamRanks), X: "step", Y: "percent", Zero: true, Smooth: true}
	first := s.samples[0]
	for _, k := range first.teams {
		reference := k.kind.reference()
		if k.kind.name == reference {
			continue
		}
		line := chart.Series{Name: k.kind.name, Color: chart.Key(k.kind.name)}
		for step, loss := range k.losses {
			line.Points = append(line.Points, chart.Point{X: float64(step), Y: 100 * (loss/first.teamOf(reference).losses[step] - 1)})
		}
		c.Series = append(c.Series, line)
	}
	return c
}
