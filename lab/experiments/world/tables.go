package world

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/parallel/collective"
)

func (s *study) tables() []report.Table {
	return []report.Table{
		s.routeTable(),
		s.sumTable(),
		report.Write(report.Table{
			Name:    "slices",
			Title:   fmt.Sprintf("A layer after %d steps on ranks that share K, beside its twin on one: outputs, gradients of inputs and weights of all seeds", s.sliceSteps),
			Columns: []string{"products and sums", "slices", "ranks", "values", "differ", "differ %", "apart %", "bytes sent"},
		}, func(t *report.Table) {
			for i, l := range s.samples[0].slices {
				elements, differ := 0, 0
				for _, of := range s.samples {
					elements, differ = elements+of.slices[i].elements, differ+of.slices[i].differ
				}
				t.Add(l.kind.name, slicing(l.fixed), l.ranks, elements, differ, 100*float64(differ)/float64(elements),
					s.mean(func(of *sample) float64 { return 100 * of.slices[i].apart }), l.bytes)
			}
		}),
		s.teamTable(),
		report.Write(report.Table{
			Name: "tokens-seeds", Raw: true,
			Columns: []string{"seed", "experts", "to experts", "back", "error of output %", "error of gradients %", "held-out loss"},
		}, func(t *report.Table) {
			for _, of := range s.samples {
				for _, r := range of.routes {
					t.Add(of.o.Seed, r.kind.experts, r.kind.dispatch, r.kind.combine, 100*r.output, 100*r.gradient, r.loss)
				}
			}
		}),
		report.Write(report.Table{
			Name: "sums-seeds", Raw: true,
			Columns: []string{"seed", "gradients", "ranks", "format", "order", "error %", "bias %", "largest error of magnitudes", "changed %", "not finite"},
		}, func(t *report.Table) {
			for _, of := range s.samples {
				for _, k := range of.sums {
					t.Add(of.o.Seed, k.operands, k.ranks, k.format.name, k.order.String(), 100*k.err.RMS, 100*k.err.Bias, k.err.Max, 100*k.err.Changed, k.err.NonFinite)
				}
			}
		}),
		report.Write(report.Table{
			Name: "slices-seeds", Raw: true,
			Columns: []string{"seed", "products and sums", "slices", "ranks", "values", "differ", "apart %"},
		}, func(t *report.Table) {
			for _, of := range s.samples {
				for _, l := range of.slices {
					t.Add(of.o.Seed, l.kind.name, slicing(l.fixed), l.ranks, l.elements, l.differ, 100*l.apart)
				}
			}
		}),
		report.Write(report.Table{
			Name: "teams-seeds", Raw: true,
			Columns: []string{"seed", "team", "mean loss of the last quarter", "above what it is compared with %", "saturated in products", "saturated in sums"},
		}, func(t *report.Table) {
			for _, of := range s.samples {
				for _, k := range of.teams {
					t.Add(of.o.Seed, k.kind.name, k.last(), of.above(k.kind.name, k.kind.reference()), k.saturated, k.summed)
				}
			}
		}),
		s.curves().Table("teams-steps", "seed", "team", "step", "loss"),
	}
}

// mean is that of a figure over seeds.
func (s *study) mean(figure func(*sample) float64) float64 { return statistics.Mean(s.bySeed(figure)) }

// figures returns the column function of a figure of what is in one place of each seed.
func figures[T any](s *study, at func(of *sample, place int) T) func(figure func(T) float64) func(place int) []float64 {
	return func(figure func(T) float64) func(int) []float64 {
		return func(place int) []float64 {
			return s.bySeed(func(of *sample) float64 { return figure(at(of, place)) })
		}
	}
}

func (s *study) routeTable() report.Table {
	of := figures(s, func(of *sample, i int) *route { return of.routes[i+1] })
	return report.Fill(report.Table{
		Name: "tokens", Title: "Tokens sent to experts and back: means over seeds; errors are distances from FP32 everywhere, over its length",
	}, report.Places(len(routeKinds)),
		report.Cell("experts", func(i int) string { return routeKinds[i].experts }),
		report.Cell("to experts", func(i int) string { return routeKinds[i].dispatch }),
		report.Cell("back", func(i int) string { return routeKinds[i].combine }),
		report.Cell("error of output %", func(i int) float64 { return 100 * statistics.Mean(of(outputError)(i)) }), report.Cell("error of gradients %", func(i int) float64 { return 100 * statistics.Mean(of(gradientError)(i)) }),
		report.Mean("held-out loss", of(func(r *route) float64 { return r.loss })),
		report.Mean("above BF16 both ways %", func(i int) []float64 {
			base := bothBF16
			if routeKinds[i].experts == expertsInFP32 {
				base.experts = expertsInFP32
			}
			return s.lossAbove(routeKinds[i], base)
		}))
}

// sumTable has the sums over the most ranks.
func (s *study) sumTable() report.Table {
	rows := slices.DeleteFunc(slices.Clone(s.samples[0].sums), func(k *sum) bool { return k.ranks != s.most() || k.operands == measured })
	of := func(figure func(collective.SumError) float64) func(*sum) []float64 {
		return func(k *sum) []float64 {
			return s.bySeed(func(of *sample) float64 { return figure(of.sumOf(k.operands, k.ranks, k.order, k.format)) })
		}
	}
	return report.Fill(report.Table{
		Name:  "sums",
		Title: fmt.Sprintf("Gradients summed over %s ranks, by simulation of the sum alone: means over seeds; scatter is a reduce-scatter and an all-gather", report.Whole(float64(s.most()))),
	}, rows,
		report.Cell("gradients", func(k *sum) string { return k.operands }), report.Cell("format", func(k *sum) string { return k.format.name }),
		report.Cell("order", func(k *sum) string { return k.order.String() }),
		report.Mean("error %", of(func(e collective.SumError) float64 { return 100 * e.RMS })),
		report.Mean("bias %", of(func(e collective.SumError) float64 { return 100 * e.Bias })),
		report.Mean("largest error of magnitudes", of(func(e collective.SumError) float64 { return e.Max })),
		report.Mean("changed %", of(func(e collective.SumError) float64 { return 100 * e.Changed })))
}

func slicing(fixed bool) string {
	if fixed {
		return fmt.Sprintf("%d, always", sliceCount)
	}
	return "as many as ranks"
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
	of := figures(s, func(of *sample, i int) *team { return of.teams[i] })
	above := func(i int) []float64 { return s.above(teamKinds[i].name, teamKinds[i].reference()) }
	return report.Fill(report.Table{
		Name: "teams", Title: fmt.Sprintf("%d ranks trained under stage 3 of ZeRO for %d steps: means over seeds", teamRanks, s.teamSteps),
	}, report.Places(len(teamKinds)),
		report.Cell("team", func(i int) string { return teamKinds[i].name }), report.Mean("mean loss of the last quarter", of((*team).last)),
		report.Cell("compared with", func(i int) string { return teamKinds[i].reference() }),
		report.Mean("above it %", above), report.StandardError("± %", above),
		report.Mean("saturated in products, of a million", of(func(t *team) float64 { return 1e6 * t.saturated })),
		report.Mean("saturated in sums, of a million", of(func(t *team) float64 { return 1e6 * t.summed })),
		report.Mean("bytes a rank sends in a step", of(func(t *team) float64 { return t.bytes })))
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

func (s *study) charts() []chart.Chart {
	return []chart.Chart{
		report.Draw(chart.Chart{
			Title: "Tokens sent to experts and back: error beside FP32 everywhere", X: "experts: there, back", Y: "percent", Zero: true,
		}, func(p *report.Plot) {
			for i, k := range routeKinds {
				add := func(series chart.Series, figure func(*route) float64) {
					p.Add(series, fmt.Sprintf("%s: %s, %s", k.experts, k.dispatch, k.combine),
						s.bySeed(func(of *sample) float64 { return 100 * figure(of.routes[i+1]) })...)
				}
				add(chart.Series{Name: "output of experts", Mark: chart.Dots}, outputError)
				add(chart.Series{Name: "gradients of all weights", Mark: chart.Rings}, gradientError)
			}
		}),
		s.sumChart(withMean),
		s.sumChart(noise),
		report.Draw(chart.Chart{
			Title: "Results of a layer that are not those of one rank", X: "ranks that share K", Y: "percent", LogX: true, Zero: true,
		}, func(p *report.Plot) {
			for _, kind := range slicedKinds {
				for _, fixed := range []bool{true, false} {
					for i, ranks := range slicedRanks {
						p.Add(chart.Series{
							Name: kind.name + ", slices: " + slicing(fixed), Color: chart.Key(kind.name), Mark: chart.Joined, Dashed: fixed,
						}, ranks, s.bySeed(func(of *sample) float64 {
							l := of.slicedOf(kind, fixed)[i]
							return 100 * float64(l.differ) / float64(l.elements)
						})...)
					}
				}
			}
		}),
		report.Draw(chart.Chart{
			Title: fmt.Sprintf("Loss above what it is compared with, %d ranks, first seed", teamRanks), X: "step", Y: "percent", Zero: true, Smooth: true,
		}, func(p *report.Plot) {
			first := s.curves().OfSeed(s.samples[0].o.Seed)
			for _, k := range teamKinds {
				if k.name != k.reference() {
					p.AddCurves(first.Above(k.name, k.reference()), chart.Series{Name: k.name, Color: chart.Key(k.name)})
				}
			}
		}),
	}
}

// sumChart shows the error of sums over the number of ranks, of a tree and of a ring.
func (s *study) sumChart(operands string) chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Error of a sum of gradients, simulated: " + operands, X: "ranks", Y: "percent", LogX: true, LogY: true,
	}}
	for _, order := range []collective.Order{collective.OrderTree, collective.OrderRing} {
		for _, f := range sumFormats {
			for _, ranks := range s.scope.sums {
				p.Add(chart.Series{
					Name: fmt.Sprintf("%s, %v", f.name, order), Color: chart.Key(f.name), Mark: chart.Joined, Dashed: order == collective.OrderRing,
				}, ranks, s.bySeed(func(of *sample) float64 { return 100 * of.sumOf(operands, ranks, order, f).RMS })...)
			}
		}
	}
	return p.Chart
}
