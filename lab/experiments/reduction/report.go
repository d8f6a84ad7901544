package reduction

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// few is the number of workers whose roundings are compared with independent ones: sums of
// few do not saturate much.
const few = 8

func (s *study) largest() int { return slices.Max(s.scope.worlds) }

// bySeed returns a figure of each sample.
func (s *study) bySeed(figure func(*sample) float64) []float64 {
	return statistics.Each(s.samples, figure)
}

// of returns a figure of one world in each sample.
func (s *study) of(k kind, size int, w way, figure func(*world) float64) []float64 {
	return s.bySeed(func(of *sample) float64 { return figure(of.world(k, size, w)) })
}

// mean returns the mean of a figure of a world over the samples.
func (s *study) mean(k kind, size int, w way, figure func(*world) float64) float64 {
	return statistics.Mean(s.of(k, size, w, figure))
}

// Figures of a world.
func underflow(w *world) float64 { return w.underflow() }
func overflow(w *world) float64  { return w.overflow() }
func meanError(w *world) float64 { return w.err }
func factor(w *world) float64    { return w.factor }

// saturatedLast is the percentage of values that saturated in the last step.
func saturatedLast(w *world) float64 { return 100 * w.saturated[len(w.saturated)-1] }

// saturatedAdapted is that of the steps in which an automatic factor has adapted.
func (s *study) saturatedAdapted(w *world) float64 {
	return 100 * statistics.Mean(w.saturated[len(w.saturated)-s.adapted:])
}

// over returns a figure of one way over that of another, by seed, in the largest world.
func (s *study) over(a, b way, figure func(*world) float64) []float64 {
	of := func(w way) []float64 { return s.of(sequences, s.largest(), w, figure) }
	return statistics.Ratios(of(a), of(b))
}

func (s *study) goals() []report.Goal {
	n := s.largest()
	loss := func(team string) []float64 {
		return s.bySeed(func(of *sample) float64 { return of.excess(of.teamOf(team)) })
	}
	return []report.Goal{
		declared().Judge("post-overflows", s.of(sequences, n, post, saturatedLast)),
		declared().Judge("auto-overflows", s.of(sequences, n, auto, s.saturatedAdapted)),
		declared().Judge("auto-underflows", s.over(auto, pre, underflow)),
		declared().Judge("auto-error-pre", s.over(auto, pre, meanError)),
		declared().Judge("auto-error-post", s.over(auto, post, meanError)),
		declared().Judge("dense-pre", s.over(pre, post, underflow)),
		declared().Judge("dense-root", s.over(root, post, underflow)),
		declared().Judge("independent", s.of(sequences, few, pre, func(w *world) float64 {
			return w.err / independentError(few)
		})),
		declared().Judge("loss-post", loss("post")),
		declared().Judge("loss-pre", loss("pre")),
		declared().Judge("loss-root", loss("root")),
		declared().Judge("loss-auto", loss("auto")),
		declared().Judge("starved", loss("starved")),
		declared().Judge("alike-post", s.of(alike, n, post, func(w *world) float64 { return 100 * w.err })),
	}
}

// FP8-LM's figures, which are reproduced and not measured.
const (
	publishedThreshold = 1e-5 // of values that saturate, above which the factor is halved
	publishedDoubling  = 1000 // steps in which it doubles otherwise
)

// independentError is the relative error of a mean of n values without a common sign
// that are rounded to E4M3, as is each partial sum, if roundings are independent. One
// is uniform over a step of 1/8 of the power of two below a value, and so relative to
// values uniform between two powers √(1/768 / (7/3)). Partial sum k is √k as large as
// a value.
func independentError(n int) float64 {
	const one = 1.0 / (768 * 7 / 3)
	x := float64(n)
	return math.Sqrt(one * (1 + (x+1)/2 - 1/x))
}

func (s *study) report() *report.Report {
	goals := s.goals()
	return &report.Report{
		Goals:    goals,
		Findings: s.findings(goals),
		Limits: []string{
			fmt.Sprintf("Published are the rule of the automatic factor (halved where more than %g %% of the values saturate, a figure of secondary sources; otherwise doubled in %d steps), which the library has and its tests show, and that values divided before underflow, divided after overflow. FP8-LM shows that on models of billions of parameters; the shares here are our own simulation, on half a million.", 100*publishedThreshold, publishedDoubling),
			"Workers are simulated: their gradients, those of one sequence each or all the same, are added one after the other, and each partial sum is rounded to E4M3. Rings do that too; trees have shorter chains.",
			"Large batches are between the two kinds: the more sequences a worker has, the more alike are the gradients. All the same is the limit, and made, not met. There values divided before do not overflow, and sums of more than 16 to 32 equal values stop growing, whatever the gradients: that follows from the format, is tested in the code, and is no goal.",
			fmt.Sprintf("Factors adapted over %d steps, in which they can be halved but hardly grow. In FP8-LM gradients have been in FP8 once before.", s.steps),
			fmt.Sprintf("Losses are of %d steps with %d workers, and models that have hardly begun to learn. The range of FP16, in which large sums overflow without FP8, is not in the library.", s.teamSteps, s.team),
		},
		Charts: []chart.Chart{
			s.worldChart("Underflow in FP8: nonzero values that become 0", underflow),
			s.worldChart("Overflow in FP8: values and sums that saturate", overflow,
				chart.Reference{Name: "FP8-LM's threshold", Value: 100 * publishedThreshold}),
			s.errorChart(sequences),
			s.errorChart(alike),
			report.Draw(chart.Chart{
				Title: "The automatic factor, median of tensors, " + sequences.name + ", first seed", X: "step", Y: "factor", LogY: true,
			}, func(p *report.Plot) {
				for _, size := range s.scope.worlds {
					for step, f := range s.samples[0].world(sequences, size, auto).factors {
						p.Add(chart.Series{Name: fmt.Sprintf("%d workers", size), Mark: chart.Joined}, step, f)
					}
				}
			}),
			report.Draw(chart.Chart{
				Title: fmt.Sprintf("Loss above that in FP32, %d workers, first seed", s.team), X: "step", Y: "percent", Zero: true, Smooth: true,
			}, func(p *report.Plot) {
				first := s.curves().OfSeed(s.samples[0].o.Seed)
				for _, k := range teamKinds[1:] {
					p.AddCurves(first.Above(k.name, teamKinds[0].name), chart.Series{Name: k.name, Color: chart.Key(k.name)})
				}
			}),
		},
		Tables: []report.Table{
			s.worldTable(),
			// A line for each team and seed.
			report.LinesOf(report.Table{
				Name: "losses", Title: fmt.Sprintf("Training with %d workers, their gradients reduced in different ways", s.team),
				Columns: []string{"seed", "reduction", "first loss", "mean loss of the last quarter", "above FP32 %"},
			}, s.samples, teamsOf, func(of *sample, k *team) []any {
				return []any{of.o.Seed, k.kind.name, k.losses[0], k.last(), of.excess(k)}
			}),
			// A line for each world and seed.
			report.LinesOf(report.Table{
				Name: "seeds", Raw: true,
				Columns: []string{"seed", "workers", "gradients", "reduction", "factor", "underflow %", "overflow %", "saturated a value %", "error of the mean %"},
			}, s.samples, worldsOf, func(of *sample, w *world) []any {
				return []any{of.o.Seed, w.size, w.kind.name, w.way.String(), w.factor, 100 * w.underflow(), 100 * w.overflow(), saturatedLast(w), 100 * w.err}
			}),
			// A line for each tensor in the largest worlds.
			report.Write(report.Table{
				Name: "tensors", Raw: true,
				Columns: []string{"seed", "workers", "gradients", "reduction", "tensor", "scale", "factor", "values", "flushed", "saturated", "saturated sums"},
			}, func(t *report.Table) {
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
			}),
			report.Write(report.Table{Name: "factors", Raw: true, Columns: []string{"seed", "workers", "gradients", "step", "factor", "saturated a value %"}}, func(t *report.Table) {
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
			}),
			s.curves().Table("losses-steps", "seed", "reduction", "step", "loss"),
		},
	}
}

// each says a figure of the divisions of FP8 in one world, in the order of divisions.
func (s *study) each(k kind, size int, figure func(*world) float64) string {
	var all []string
	for _, w := range ways() {
		if w.fp8 {
			all = append(all, report.Percent(s.mean(k, size, w, figure))+" "+w.division.String())
		}
	}
	return strings.Join(all, ", ")
}

// more says by how much the mean is further off one way than another, with its interval.
func (s *study) more(a, b way) string {
	of := func(w way) []float64 {
		return s.of(sequences, s.largest(), w, func(w *world) float64 { return 100 * w.err })
	}
	return report.Interval(statistics.Differences(of(a), of(b)), "%+.3g", "")
}

func (s *study) findings(goals []report.Goal) []report.Finding {
	n := s.largest()
	at := func(k kind, w way, figure func(*world) float64) float64 { return s.mean(k, n, w, figure) }
	var losses, sums []string
	for _, k := range teamKinds[1:] {
		excess := s.bySeed(func(of *sample) float64 { return of.excess(of.teamOf(k.name)) })
		losses = append(losses, k.name+" "+report.Interval(excess, "%+.2f", " %"))
	}
	for _, size := range s.scope.worlds {
		sums = append(sums, fmt.Sprintf("%s with %d", report.Percent(s.mean(alike, size, pre, meanError)), size))
	}
	first := s.samples[0]
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("With %d workers of %s, of the nonzero values underflow %s; of values and sums overflow %s; means of the seeds.%s",
			n, sequences.name, s.each(sequences, n, underflow), s.each(sequences, n, overflow),
			report.Outcomes(goals, "As declared", "post-overflows", "auto-overflows", "auto-underflows", "dense-pre", "dense-root"))),
		report.NewFinding(fmt.Sprintf("The mean is off by %s; when all workers have the same, by %s. Divided after it is off by %s percent of its length more than divided before.%s",
			s.each(sequences, n, meanError), s.each(alike, n, meanError), s.more(post, pre),
			report.Outcomes(goals, "As declared", "auto-error-pre", "auto-error-post", "alike-post"))),
		report.NewFinding(fmt.Sprintf("From 16 to 32 times a value on, the value is at most half a step of E4M3, and adding it to a sum changes nothing. Divided before, gradients that are all the same are off by %s workers.", strings.Join(sums, ", "))),
		report.NewFinding(fmt.Sprintf("The automatic factor ends at %.3g for %d workers with %s, and at %.3g when all have the same (medians of tensors; 1/n is %.3g, 1/√n %.3g). It moves by halves, so it may be half of what would do.",
			at(sequences, auto, factor), n, sequences.name, at(alike, auto, factor), 1/float64(n), 1/math.Sqrt(float64(n)))),
		report.NewFinding(fmt.Sprintf("A worker sends %.4f bytes a value in FP8 with a shared scale, against 4.", first.world(sequences, n, pre).bytes(first.run.Model.Params()))),
		report.NewFinding(fmt.Sprintf("After %d steps with %d workers the loss in FP8 differs from that in FP32, %.3f, by: %s. The last begins with a factor of 2^-16, from which it takes %d steps for each doubling.",
			s.teamSteps, s.team, statistics.Mean(s.bySeed(func(of *sample) float64 { return of.teams[0].last() })), strings.Join(losses, ", "), publishedDoubling)),
	}
}

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
		report.Cell("division", func(w *world) string { return w.way.division.String() }),
		report.Cell("seeds", func(*world) int { return len(s.samples) }), report.Mean("factor", of(factor)),
		percent("underflow %", underflow), percent("overflow %", overflow), percent("error of the mean %", meanError),
		report.StandardError("± %", of(func(w *world) float64 { return 100 * w.err })),
		report.Cell("bytes a value", func(w *world) float64 { return w.bytes(first.run.Model.Params()) }))
}

func teamsOf(of *sample) []*team   { return of.teams }
func worldsOf(of *sample) []*world { return of.worlds }

// curves are the losses of teams.
func (s *study) curves() report.Curves {
	return report.CurvesOf(s.samples, teamsOf, func(of *sample, k *team) report.Curve {
		return report.Curve{Seed: of.o.Seed, Arm: k.kind.name, Values: k.losses}
	})
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
	for _, division := range divisions {
		for _, size := range s.scope.worlds {
			p.Add(chart.Series{Name: division.String() + name, Color: chart.Key(division.String()), Mark: chart.Joined, Dashed: k.name == alike.name},
				size, 100*s.mean(k, size, way{true, division}, figure))
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
