package moe

import (
	"fmt"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

func (r *results) report() *report.Report {
	goals := declared().JudgeAll(r.judged())
	return &report.Report{
		Goals: goals,
		Findings: []report.Finding{
			report.NewFinding(fmt.Sprintf("The training loss of the last two thirds of the steps is above that of BF16 by %s in FP8 (in brackets "+
				"the interval over seeds), by %s under DeepSeek-V3's recipe, by %s in MXFP8, by %s under delayed "+
				"scales, and by %s in BF16 with a rate that is lower by a fifth. Without biases that balance "+
				"experts BF16 itself is off by %s.%s",
				percent(r.gap(fp8Arm)), percent(r.gap(deepSeekArm)), percent(r.gap(mxfp8Arm)),
				percent(r.gap(delayedArm)), percent(r.gap(slowerArm)), percent(r.gap(unbalancedArm)),
				report.Outcomes(goals, "As declared", "loss-fp8", "loss-deepseek-v3", "loss-mxfp8", "loss-lower-rate"))),
			r.loadFinding(goals),
			r.choiceFinding(goals),
			r.expertFinding(goals),
		},
		Limits: r.limits(),
		Charts: []chart.Chart{
			// Of the training loss as gaps: the losses themselves lie on each other.
			report.Draw(chart.Chart{
				Title: "Training loss above that of BF16 on the same batch, mean of the seeds",
				X:     "step", Y: "percent", Zero: true, Smooth: true,
			}, func(p *report.Plot) {
				for _, i := range charted {
					a := arms()[i]
					p.AddCurves(r.curves().Above(a.name, arms()[bf16Arm].name), chart.Series{Name: a.name, Dashed: a.control})
				}
			}),
			report.Draw(chart.Chart{
				Title: "Training loss of the last two thirds of the steps above that of BF16, by seed; at the end the " +
					"mean and its standard error",
				X: "seed", Y: "percent", Zero: true,
			}, func(p *report.Plot) {
				for _, i := range charted {
					s, gaps := chart.Series{Name: arms()[i].name, Mark: chart.Dots}, r.gap(i)
					for j, f := range r.seeds {
						p.Add(s, f.seed, gaps[j])
					}
					p.AddMean(s, "mean", gaps...)
				}
			}),
			report.Draw(chart.Chart{
				Title: "Loads of a step: standard deviation over the mean, mean of layers and seeds",
				X:     "step", Y: "coefficient of variation", Zero: true, Smooth: true,
			}, func(p *report.Plot) {
				for _, i := range []int{bf16Arm, fp8Arm, deepSeekArm, mxfp8Arm, unbalancedArm} {
					for step := range r.study.steps {
						p.Add(chart.Series{Name: arms()[i].name}, step, r.of(func(f found) float64 {
							return r.overMixtures(func(m int) float64 { return variation(f.arms[i].loads[step][m]) })
						})...)
					}
				}
			}),
			r.loadChart(),
			r.amaxChart(),
			report.Draw(chart.Chart{
				Title: "Values that saturate in the experts under delayed scales, mean of layers and seeds",
				X:     "step", Y: "of a million", Zero: true,
			}, func(p *report.Plot) {
				for o, of := range operands() {
					for _, shared := range []bool{false, true} {
						s := chart.Series{Name: of.what, Color: chart.Key(of.what), Dashed: shared}
						if shared {
							s.Name += ", shared expert"
						}
						for step := 1; step < r.study.steps; step++ { // at first scales are of nothing yet
							if r.study.listens(step) {
								p.Add(s, step, r.of(func(f found) float64 { return r.saturatedAt(f, o, step, shared) })...)
							}
						}
					}
				}
			}),
			report.Draw(chart.Chart{
				Title: "Values that become 0 in E4M3, by what shares a scale, after FP8's training; mean of seeds",
				Y:     "of a thousand", Zero: true,
			}, func(p *report.Plot) {
				for _, s := range sharings() {
					p.Add(chart.Series{Name: shareWays[s.way], Mark: chart.Bars}, operands()[s.operand].what,
						r.flushed(s.operand, ofAll(s.way))...)
				}
			}),
			report.Draw(chart.Chart{
				Title: "Choices that are not FP32's at the same weights, by layer, mean of the seeds",
				X:     "layer", Y: "percent", LogY: true,
			}, func(p *report.Plot) {
				for i, a := range compared() {
					if i == blocksThere { // whose forward pass is FP8's
						continue
					}
					for m := range r.study.mixtures() {
						p.Add(chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.control},
							fmt.Sprint(r.study.config().Dense+m), r.changed(i, m)...)
					}
				}
			}),
			report.Draw(chart.Chart{
				Title: "Error of the gradients of a part's weights against FP32, median of weights, mean of seeds",
				Y:     "percent of the gradient", LogY: true,
			}, func(p *report.Plot) {
				for i, a := range compared() {
					if i == routerBF16There || i == routerE4M3There {
						continue
					}
					for _, part := range parts {
						p.Add(chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.control}, part, r.gradient(i, part)...)
					}
				}
			}),
		},
		Tables: []report.Table{
			r.lossTable(),
			r.loadTable(),
			r.expertTable(),
			r.shareTable(),
			r.comparedTable(),
			r.seedTable(),
			r.curves().Table("curves", "seed", "arm", "step", "loss"),
			// The loads of the first seed, step by step.
			report.Write(report.Table{Name: "steps", Raw: true, Columns: []string{"seed", "arm", "layer", "step"}}, func(t *report.Table) {
				for e := range r.study.experts() {
					t.Columns = append(t.Columns, fmt.Sprintf("tokens, expert %d", e))
				}
				f := r.seeds[0]
				for i, a := range arms() {
					for step, loads := range f.arms[i].loads {
						for m, load := range loads {
							row := []any{fmt.Sprint(f.seed), a.name, r.study.config().Dense + m, step}
							for _, n := range load {
								row = append(row, n)
							}
							t.Add(row...)
						}
					}
				}
			}),
			// The telemetry of the first seed, step by step.
			report.Write(report.Table{
				Name: "telemetry", Raw: true,
				Columns: []string{
					"seed", "arm", "step", "operand", "layer", "expert", "amax", "values", "saturated", "flushed",
				},
			}, func(t *report.Table) {
				f := r.seeds[0]
				for i, a := range arms() {
					for _, h := range f.arms[i].heard {
						expert := fmt.Sprint(h.expert)
						if h.expert == r.study.experts() {
							expert = "shared"
						}
						t.Add(fmt.Sprint(f.seed), a.name, h.step, operands()[h.operand].what,
							r.study.config().Dense+h.mixture, expert, h.amax, h.elements, h.saturated, h.flushed)
					}
				}
			}),
		},
	}
}

// percent is a mean over seeds with its interval.
func percent(values []float64) string { return report.Interval(values, "%+.3f", " %") }

// loadFinding says how tokens are shared out.
func (r *results) loadFinding(goals []report.Goal) report.Finding {
	of := func(values []float64) float64 { return statistics.Mean(values) }
	return report.NewFinding(fmt.Sprintf("The coefficient of variation of the experts' loads, over the last "+
		"third of the steps together, is %.3f in BF16 with biases and %.3f without, and %.3f in FP8 with "+
		"them; within a step it is %.3f, %.3f and %.3f.%s",
		of(r.lasting(bf16Arm, variation)), of(r.lasting(unbalancedArm, variation)),
		of(r.lasting(fp8Arm, variation)), of(r.byStep(bf16Arm, variation)),
		of(r.byStep(unbalancedArm, variation)), of(r.byStep(fp8Arm, variation)),
		report.Outcomes(goals, "As declared", "balanced", "load-fp8", "load-no-biases")))
}

// choiceFinding says which choices change, and what becomes of gradients.
func (r *results) choiceFinding(goals []report.Goal) report.Finding {
	changes := func(arm int) string { return report.Interval(r.changes(arm), "%.2f", " %") }
	return report.NewFinding(fmt.Sprintf("Of the choices that a model makes, this many are not those of the "+
		"same weights in FP32, though the router's own product is FP32: in BF16 %s, in FP8 %s. With the "+
		"router's operands in BF16, E4M3 and E2M1 it is %s, %s and %s. The error of gradients is above "+
		"FP8's by %s with tiles of 128x128 for gradients, and by %s in E5M2.%s",
		changes(bf16There), changes(fp8There), changes(routerBF16There), changes(routerE4M3There),
		changes(routerE2M1There), percent(r.above(blocksThere, fp8There)),
		percent(r.above(e5m2There, fp8There)),
		report.Outcomes(goals, "As declared", "choices-fp8", "choices-router-e2m1", "error-gradient-blocks", "error-e5m2")))
}

// expertFinding says how experts differ, and what that does.
func (r *results) expertFinding(goals []report.Goal) report.Finding {
	flushed := func(way int) string { return report.Interval(r.flushed(inputOfDown, ofAll(way)), "%.3f", " ‰") }
	return report.NewFinding(fmt.Sprintf("The largest amax of an expert's input of down is %s powers of two "+
		"above the least of the layer. Of these inputs become 0: with one scale for the tokens of all "+
		"experts %s, with one for those of each expert %s, with one for 1x128 %s. Under delayed scales "+
		"saturate of a million values %s in experts to choose from, and %s in the shared one; under the "+
		"default recipe %s.%s",
		report.Interval(r.spread(inputOfDown), "%.2f", ""), flushed(oneScale), flushed(scaleEach), flushed(scaleTile),
		report.Interval(r.saturated(delayedArm, false), "%.1f", ""), report.Interval(r.saturated(delayedArm, true), "%.1f", ""),
		report.Interval(r.saturated(fp8Arm, false), "%.1f", ""),
		report.Outcomes(goals, "As declared", "amax-spread", "shared-scale", "late-saturated")))
}

func (r *results) limits() []string {
	c, s := r.study.config(), r.study
	return []string{
		fmt.Sprintf("Models have %d layers of width %d, %d experts of which a token goes to %d and a shared "+
			"one, and see %d bytes; DeepSeek-V3's figure is for models of 16 and 230 billion with 64 to 256 "+
			"experts and a trillion tokens. What goes wrong late in training cannot show here.",
			c.Layers, c.Dim, c.Experts.Router.Experts, c.Experts.Router.TopK, s.steps*s.batch*s.seq),
		"Runs of one seed have first weights and batches in common, and part by chance once a token has " +
			"gone to another expert: of what the loss shows, that is part. Its control is a lower rate; that it " +
			"tells arithmetics apart is not shown: in a pilot FP4 without its recipe was no worse.",
		"BF16 rounds the operands and the results of the linear layers' products and adds in FP32; the " +
			"router, attention scores, norms, the head and the optimizer are FP32 in all runs, but for " +
			"DeepSeek-V3's moments in BF16 and the routers that say otherwise.",
		"All experts are in one process: nothing is sent, and nothing is dropped for lack of capacity.",
		"Choices and gradients are compared at the weights where BF16's training ended. Gradients of FP32 " +
			"are taken for the true ones; a token that goes to another expert counts as an error of both " +
			"experts' gradients.",
		fmt.Sprintf("Operands are recorded in every step of %d; saturation between is not seen.", s.every),
	}
}

// charted are the arms whose gaps are drawn.
var charted = []int{fp8Arm, deepSeekArm, mxfp8Arm, delayedArm, unbalancedArm, slowerArm}

// loadChart shows the loads of the experts of the last layer over steps.
func (r *results) loadChart() chart.Chart {
	f, tokens := r.seeds[0], r.study.batch*r.study.seq
	p := report.Plot{Chart: chart.Chart{
		Title: fmt.Sprintf("Tokens that come to each expert of the last layer, FP8, seed %d", f.seed),
		X:     "step", Y: "percent of all tokens", Zero: true, Smooth: true,
	}}
	for step, loads := range f.arms[fp8Arm].loads {
		for e, n := range loads[r.study.mixtures()-1] {
			p.Add(chart.Series{Name: fmt.Sprintf("expert %d", e)}, step, 100*float64(n)/float64(tokens))
		}
	}
	return p.Chart
}

// amaxChart shows the amax of the experts of the last layer over steps.
func (r *results) amaxChart() chart.Chart {
	f := r.seeds[0]
	p := report.Plot{Chart: chart.Chart{
		Title: fmt.Sprintf("Largest magnitude of each expert's input of down in the last layer, FP8, "+
			"seed %d", f.seed),
		X: "step", Y: "amax", LogY: true,
	}}
	for e := range r.study.experts() {
		s := p.Begin(chart.Series{Name: fmt.Sprintf("expert %d", e)})
		for _, h := range f.arms[fp8Arm].heard {
			if h.place == (place{inputOfDown, r.study.mixtures() - 1, e}) && h.elements > 0 {
				p.Add(s, h.step, h.amax)
			}
		}
	}
	return p.Chart
}

func (r *results) saturatedAt(f found, operand, step int, shared bool) float64 {
	var saturated, elements int64
	for _, h := range f.arms[delayedArm].heard {
		is := h.expert == r.study.experts()
		if h.operand == operand && h.step == step && is == shared {
			saturated += h.saturated
			elements += h.elements
		}
	}
	return 1e6 * float64(saturated) / float64(elements)
}

func (r *results) lossTable() report.Table {
	above := func(arm int) []float64 { return statistics.PercentAbove(r.heldOut(arm), r.heldOut(bf16Arm)) }
	return report.Fill(report.Table{
		Name: "losses", Title: "Training loss in the last two thirds of the steps and held-out loss after them, in nats per " +
			"byte, means over the seeds",
	}, report.Places(len(arms())), armName,
		report.Mean("training loss", r.trained), report.Mean("above BF16 %", r.gap), report.Deviation("standard deviation", r.gap),
		report.Low("interval from", r.gap), report.High("to", r.gap),
		report.Mean("held-out loss", r.heldOut), report.Mean("above BF16 %", above),
		report.Cell("steps without a finite gradient", func(arm int) (skipped int) {
			for _, f := range r.seeds {
				skipped += f.arms[arm].skipped
			}
			return skipped
		}))
}

var armName = report.Cell("", func(arm int) string { return arms()[arm].name })

func (r *results) loadTable() report.Table {
	step := func(arm int) []float64 { return r.byStep(arm, variation) }
	all := func(arm int) []float64 { return r.lasting(arm, variation) }
	return report.Fill(report.Table{
		Name: "loads", Title: "How uneven the loads of experts are in the last third of the steps, means " +
			"over layers and seeds",
	}, report.Places(len(arms())), armName,
		report.Mean("variation in a step", step), report.Deviation("standard deviation", step),
		report.Mean("variation of all steps together", all), report.Deviation("standard deviation", all),
		report.Cell("largest above the mean, in a step %", func(arm int) float64 { return 100 * statistics.Mean(r.byStep(arm, excess)) }),
		report.Cell("of all steps together %", func(arm int) float64 { return 100 * statistics.Mean(r.lasting(arm, excess)) }))
}

// expertTable is the telemetry of each expert of the first seed.
func (r *results) expertTable() report.Table {
	f, s := r.seeds[0], r.study
	t := report.Table{
		Name: "experts", Title: fmt.Sprintf("Telemetry of each expert in the last third of the steps, seed %d: "+
			"largest amax in FP8, and of all four operands what is lost", f.seed),
		Columns: []string{"layer", "expert", "tokens that come to it %"},
	}
	for _, o := range operands() {
		t.Columns = append(t.Columns, "amax, "+o.what)
	}
	t.Columns = append(t.Columns, "flushed ‰", "saturated of a million", "saturated of a million, delayed scales")
	for m := range s.mixtures() {
		load := append(r.lateLoad(f.arms[fp8Arm], m), (s.steps-s.late())*s.batch*s.seq)
		for e := range s.experts() + 1 {
			name := fmt.Sprint(e)
			if e == s.experts() {
				name = "shared"
			}
			row := []any{s.config().Dense + m, name, 100 * float64(load[e]) / float64(load[s.experts()])}
			own := r.expertHeard(f.arms[fp8Arm], m, e)
			for _, amax := range own.amax {
				row = append(row, amax)
			}
			late := r.expertHeard(f.arms[delayedArm], m, e)
			t.Add(append(row, 1e3*own.share(own.flushed), 1e6*own.share(own.saturated),
				1e6*late.share(late.saturated))...)
		}
	}
	return t
}

// expertHeard is what was heard of an expert in the last third of the steps.
type expertHeard struct {
	amax                         []float64 // by operand
	elements, flushed, saturated int64
}

func (e expertHeard) share(n int64) float64 { return float64(n) / float64(e.elements) }

func (r *results) expertHeard(a result, mixture, expert int) expertHeard {
	e := expertHeard{amax: make([]float64, len(operands()))}
	for _, h := range r.lateHeard(a) {
		if h.mixture == mixture && h.expert == expert {
			e.amax[h.operand] = max(e.amax[h.operand], h.amax)
			e.elements += h.elements
			e.flushed += h.flushed
			e.saturated += h.saturated
		}
	}
	return e
}

// sharing is an operand, and what shares its scale.
type sharing struct{ operand, way int }

func sharings() (all []sharing) {
	for o := range operands() {
		for way := range shareWays {
			all = append(all, sharing{o, way})
		}
	}
	return all
}

// shareTable has what scales that experts share do.
func (r *results) shareTable() report.Table {
	lost := func(figure func(int, func(roundings) rounding) []float64, of func(way int) func(roundings) rounding) func(sharing) []float64 {
		return func(s sharing) []float64 { return figure(s.operand, of(s.way)) }
	}
	return report.Fill(report.Table{
		Name: "scales", Title: "Operands of FP8's experts after training in E4M3, by what shares a scale: " +
			"all experts of a layer, and the one of least amax; means over the seeds",
	}, sharings(),
		report.Cell("operand", func(s sharing) string { return operands()[s.operand].what }),
		report.Mean("amax of experts, largest over least, powers of two", func(s sharing) []float64 { return r.spread(s.operand) }),
		report.Cell("shares a scale", func(s sharing) string { return shareWays[s.way] }),
		report.Mean("flushed ‰", lost(r.flushed, ofAll)), report.Mean("error %", lost(r.off, ofAll)),
		report.Mean("flushed ‰, least expert", lost(r.flushed, ofLeast)), report.Mean("error %, least expert", lost(r.off, ofLeast)))
}

// comparedTable has choices and gradients at the same weights.
func (r *results) comparedTable() report.Table {
	above := func(arm int) []float64 { return r.above(arm, fp8There) }
	error := func(of ...string) func(arm int) []float64 {
		return func(arm int) []float64 { return r.gradient(arm, of...) }
	}
	columns := []report.Column[int]{
		report.Cell("", func(arm int) string { return compared()[arm].name }),
		report.Mean("choices that change", r.changes), report.Deviation("standard deviation", r.changes),
		report.Mean("gradient error", error(products...)),
		report.Mean("above FP8's", above), report.Deviation("standard deviation", above),
	}
	for _, part := range parts {
		columns = append(columns, report.Mean("error, "+part, error(part)))
	}
	return report.Fill(report.Table{
		Name: "compared", Title: "Choices and gradients against FP32 at the weights where BF16 ended, in " +
			"percent, means over the seeds; errors are the median of weights",
	}, report.Places(len(compared())), columns...)
}

// seedTable has the figures that goals are made of.
func (r *results) seedTable() report.Table {
	values := r.judged()
	columns := []report.Column[int]{report.Cell("seed", func(i int) uint64 { return r.seeds[i].seed })}
	for _, name := range declared().Names() {
		columns = append(columns, report.Cell(name, func(i int) float64 { return values[name][i] }))
	}
	return report.Fill(report.Table{Name: "seeds", Raw: true}, report.Places(len(r.seeds)), columns...)
}

// curves are the training losses.
func (r *results) curves() report.Curves {
	return report.CurvesOf(r.seeds, func(found) []int { return report.Places(len(arms())) }, func(f found, arm int) report.Curve {
		return report.Curve{Seed: f.seed, Arm: arms()[arm].name, Values: f.arms[arm].losses}
	})
}
