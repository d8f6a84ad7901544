package parity

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// results are what came of all seeds. Figures are lists of a value of each seed, in percent.
type results struct {
	study   study
	weights []string
	seeds   []found
	real    widths // of activations of a real model; nil: none were given
}

// of returns a figure of each seed.
func (r *results) of(figure func(found) float64) []float64 { return statistics.Each(r.seeds, figure) }

// gap is by how much the held-out loss of an arm is above that of FP32.
func (r *results) gap(arm int) []float64 {
	return r.of(func(f found) float64 { return 100 * (f.arms[arm].after/f.arms[fp32Arm].after - 1) })
}

// gapBefore is gap before the arm has trained: what its forward pass alone costs.
func (r *results) gapBefore(arm int) []float64 {
	return r.of(func(f found) float64 { return 100 * (f.arms[arm].before/f.arms[fp32Arm].before - 1) })
}

// overWeights returns 100 times the mean of a figure over the weights.
func (r *results) overWeights(of map[string]layerError, figure func(layerError) float64) float64 {
	var sum float64
	for _, w := range r.weights {
		sum += figure(of[w])
	}
	return 100 * sum / float64(len(r.weights))
}

// gradient returns a figure of the gradients of an arm that is not FP32, mean over weights,
// at the weights where arms part.
func (r *results) gradient(arm int, figure func(layerError) float64) []float64 {
	return r.of(func(f found) float64 { return r.overWeights(f.fixed[arm-1], figure) })
}

// walked is gradient along the steps in FP32.
func (r *results) walked(arm int, figure func(layerError) float64) []float64 {
	return r.of(func(f found) float64 { return r.overWeights(f.walk[arm-1], figure) })
}

// added is a figure of a way to add, mean over the products of a pass.
func (r *results) added(way int, figure func(additionError) float64) []float64 {
	return r.of(func(f found) float64 {
		var sum float64
		for _, product := range f.added {
			sum += figure(product[way])
		}
		return 100 * sum / float64(len(f.added))
	})
}

// Figures of gradients.
func relative(e layerError) float64   { return e.relative }
func projection(e layerError) float64 { return e.projection }
func summed(e layerError) float64     { return e.sum }
func distance(e layerError) float64   { return 1 - e.cosine }
func persistent(e layerError) float64 { return e.persistent }
func fallen(e layerError) float64     { return e.fall }

// Figures of ways to add.
func addedError(e additionError) float64 { return e.relative }
func addedBias(e additionError) float64  { return e.projection }

// meanOver returns the figure of the mean error over n batches.
func meanOver(n int) func(layerError) float64 {
	return func(e layerError) float64 { return e.mean[n-1] }
}

// judged are the values of each hypothesis and control, one of each seed.
func (r *results) judged() map[string][]float64 {
	all := map[string][]float64{
		"addition-fp32":         r.added(inFP32, addedError),
		"addition-promoted":     r.added(promoted, addedError),
		"addition-not-promoted": r.added(notPromoted, addedError),
	}
	for arm, name := range map[int]string{
		bf16Arm: "bf16", fp8Arm: "fp8", deepSeekArm: "deepseek-v3",
		e5m2Arm: "e5m2", truncatedArm: "truncated", staleArm: "stale", fp4Arm: "fp4",
	} {
		all["loss-"+name] = r.gap(arm)
		all["error-"+name] = statistics.Ratios(r.gradient(arm, relative), r.gradient(bf16Arm, relative))
		all["bias-"+name] = r.gradient(arm, projection)
		all["sum-"+name] = statistics.Ratios(r.walked(arm, summed), r.walked(bf16Arm, summed))
		all["lasting-"+name] = r.gradient(arm, persistent)
	}
	return all
}

func (r *results) report() *report.Report {
	goals := declared().JudgeAll(r.judged())
	return &report.Report{
		Goals: goals,
		Findings: []report.Finding{
			report.NewFinding(fmt.Sprintf("Held-out loss is above that of FP32 by %s in FP8 (in brackets "+
				"the interval over seeds), by %s in E5M2 with one scale per tensor, which seed by seed is %s "+
				"above FP8, and by %s under stale scales. The last two are no controls of the loss: pilots say "+
				"that at this scale it cannot tell them from FP32 by the margin, whether they do harm or not.%s",
				said(r.gap(fp8Arm)), said(r.gap(e5m2Arm)),
				said(statistics.Differences(r.gap(e5m2Arm), r.gap(fp8Arm))), said(r.gap(staleArm)),
				report.Outcomes(goals, "Their controls are errors of gradients", "error-e5m2", "sum-e5m2", "error-stale"))),
			r.gradientFinding(goals),
			r.batchesFinding(goals),
		},
		Limits: r.limits(),
		Charts: []chart.Chart{
			report.Draw(chart.Chart{
				Title: "Training loss, mean of the seeds: in common, and then apart",
				X:     "step", Y: "nats per byte", Smooth: true,
			}, func(p *report.Plot) {
				for _, a := range arms() {
					p.AddCurves(r.curves(), chart.Series{Name: a.name, Dashed: a.control})
				}
				p.AddCurves(r.curves(), chart.Series{Name: "common"})
				p.Series[len(arms())].Name = "in common, FP32"
			}),
			// Of the steps that arms have apart, as gaps: the losses themselves lie on
			// each other.
			report.Draw(chart.Chart{
				Title: "Training loss above that of FP32 on the same batch, mean of the seeds",
				X:     "step of each arm", Y: "percent", Zero: true, Smooth: true,
			}, func(p *report.Plot) {
				for _, i := range trainedArms() {
					a := arms()[i]
					p.AddCurves(r.curves().Above(a.name, arms()[fp32Arm].name), chart.Series{Name: a.name, Dashed: a.control})
				}
			}),
			report.Draw(chart.Chart{
				Title: "Held-out loss above that of FP32, by seed; at the end the mean and its standard error",
				X:     "seed", Y: "percent", Zero: true,
			}, func(p *report.Plot) {
				for _, arm := range trainedArms() {
					p.AddMean(r.bySeed(p, arm, r.gap(arm)), "mean", r.gap(arm)...)
				}
			}),
			report.Draw(chart.Chart{
				Title: "Error of the gradient of each weight, of a batch, against float64: mean of the seeds",
				Y:     "percent of the gradient", LogY: true,
			}, func(p *report.Plot) {
				for _, arm := range trainedArms() {
					for _, w := range r.weights {
						layer, name, _ := layerOf(w)
						_, name, _ = strings.Cut(name, ".")
						p.Add(joined(arm), fmt.Sprintf("%d %s", layer, strings.TrimSuffix(name, "_proj")),
							r.of(func(f found) float64 { return 100 * f.fixed[arm-1][w].relative })...)
					}
				}
			}),
			report.Draw(chart.Chart{
				Title: "Projection of the gradient on the true one, less 1: mean of weights and batches, by seed",
				X:     "seed", Y: "percent", Zero: true,
			}, func(p *report.Plot) {
				for _, arm := range trainedArms() {
					r.bySeed(p, arm, r.gradient(arm, projection))
				}
			}),
			report.Draw(chart.Chart{
				Title: "Error of the mean gradient over so many batches: mean of weights and seeds",
				X:     "batches", Y: "percent of one gradient", LogX: true, LogY: true,
			}, func(p *report.Plot) {
				for _, arm := range trainedArms() {
					for n := 1; n <= r.study.batches; n++ {
						p.Add(joined(arm), n, r.gradient(arm, meanOver(n))...)
					}
				}
				free := chart.Series{
					Name:  "FP8, if errors of batches were independent",
					Color: chart.Key(arms()[fp8Arm].name), Dashed: true,
				}
				one := statistics.Mean(r.gradient(fp8Arm, meanOver(1)))
				for n := 1; n <= r.study.batches; n++ {
					p.Add(free, n, one/math.Sqrt(float64(n)))
				}
			}),
		},
		Tables: []report.Table{
			report.Fill(report.Table{Name: "gaps", Title: "Held-out loss above that of FP32, in percent, over the seeds"},
				trainedArms(), armName,
				report.Mean("before it trains, mean", r.gapBefore), report.Mean("after, mean", r.gap),
				report.Deviation("standard deviation", r.gap), report.Low("interval from", r.gap), report.High("to", r.gap)),
			r.gradientTable(),
			r.additionTable(),
			report.Write(report.Table{
				Name: "operands",
				Title: "Spread of the inputs of linear layers, mean of layers: as trained in common, as they are " +
					"here, and in a real model",
				Columns: []string{
					"", "model", "kurtosis", "largest over root mean square",
					"channels: standard deviation, powers of two", "channels: largest over median",
				},
			}, func(t *report.Table) {
				first := r.seeds[0]
				for i, k := range operandKinds {
					for _, m := range []struct {
						name string
						of   widths
					}{{"as trained", first.plain}, {"with a spread", first.spread}, {"real", r.real}} {
						if m.of != nil && len(m.of[i]) > 0 {
							w := mean(m.of[i])
							t.Add(k.what, m.name, w.kurtosis, w.amax, w.channels, w.largest)
						}
					}
				}
			}),
			report.Write(report.Table{
				Name: "losses", Title: "Held-out loss in nats per byte",
				Columns: []string{"seed", "arm", "before", "after"},
			}, func(t *report.Table) {
				for _, f := range r.seeds {
					for i, a := range arms() {
						t.Add(fmt.Sprint(f.seed), a.name, f.arms[i].before, f.arms[i].after)
					}
				}
			}),
			report.Write(report.Table{
				Name: "layers", Title: "Error of the gradient of each weight", Raw: true,
				Columns: []string{"seed", "arm", "weight", "error %", "cosine", "bias %", "sum of steps %"},
			}, func(t *report.Table) {
				for _, f := range r.seeds {
					for i, a := range arms()[fp32Arm+1:] {
						for _, w := range r.weights {
							e := f.fixed[i][w]
							t.Add(fmt.Sprint(f.seed), a.name, w,
								100*e.relative, e.cosine, 100*e.projection, 100*f.walk[i][w].sum)
						}
					}
				}
			}),
			r.curves().Table("curves", "seed", "arm", "step", "loss"),
		},
	}
}

// said is a mean over seeds with its interval, in percent.
func said(values []float64) string { return report.Interval(values, "%+.4f", " %") }

// gradientFinding says how far gradients are from those in float64.
func (r *results) gradientFinding(goals []report.Goal) report.Finding {
	more := statistics.Differences(r.gradient(e5m2Arm, relative), r.gradient(fp8Arm, relative))
	return report.NewFinding(fmt.Sprintf("The gradient of a batch is off by this much of its length: in "+
		"FP8 %s, in E5M2 with one scale per tensor %s, seed by seed %s more than in FP8.%s",
		said(r.gradient(fp8Arm, relative)), said(r.gradient(e5m2Arm, relative)), said(more),
		report.Outcomes(goals, "Against BF16's error, as declared", "error-fp8", "error-deepseek-v3", "error-e5m2")))
}

// batchesFinding says how far errors of gradients average out.
func (r *results) batchesFinding(goals []report.Goal) report.Finding {
	n := r.study.batches
	return report.NewFinding(fmt.Sprintf("The mean of %d batches has %s of the error that one batch's "+
		"gradient has in FP8; if errors were independent from batch to batch it would be %.1f %%. The "+
		"part that is the same in all batches is %s of the squared error in FP8, and %s where codes are "+
		"truncated.%s",
		n, said(r.gradient(fp8Arm, fallen)), 100/math.Sqrt(float64(n)),
		said(r.gradient(fp8Arm, persistent)), said(r.gradient(truncatedArm, persistent)),
		report.Outcomes(goals, "As declared", "lasting-fp8", "lasting-deepseek-v3", "lasting-truncated")))
}

func (r *results) limits() []string {
	c, form, steps := r.study.config, r.study.form, r.study.common+r.study.apart
	return []string{
		fmt.Sprintf("Models have %d layers of width %d and %d and see %d bytes; DeepSeek-V3's figure is "+
			"for models of 16 and 230 billion and a trillion tokens. What goes wrong late in training "+
			"cannot show here.",
			c.Layers, c.Dim, c.Hidden, steps*r.study.sequences*c.Context),
		fmt.Sprintf("All arms begin from a model that was trained in FP32, %d steps of %d. "+
			"Gaps are those of what followed.", r.study.common, steps),
		fmt.Sprintf("Outliers are not grown by training: channels are multiplied by powers of two, of "+
			"deviation %v, and %v %% of them by %v, and the weights that read them divided by as much, "+
			"which changes nothing in FP32.",
			form.deviation, 100*form.outliers, form.outlier),
		"BF16 rounds the operands and the results of the linear layers' products and adds in FP32; " +
			"attention scores, norms, the head and the optimizer are FP32 in all runs, but for DeepSeek-V3's " +
			"moments in BF16.",
		"The true gradient is that of the same weights in float64: rounding that weights have in " +
			"common is an error here, though a model can learn to live with it.",
	}
}

// bySeed adds a series of the values of an arm.
func (r *results) bySeed(p *report.Plot, arm int, values []float64) chart.Series {
	s := chart.Series{Name: arms()[arm].name, Mark: chart.Dots}
	for i, f := range r.seeds {
		p.Add(s, f.seed, values[i])
	}
	return s
}

func joined(arm int) chart.Series {
	return chart.Series{Name: arms()[arm].name, Mark: chart.Joined, Dashed: arms()[arm].control}
}

// trainedArms are those that are compared with FP32.
func trainedArms() []int { return report.Places(len(arms()))[fp32Arm+1:] }

var armName = report.Cell("", func(arm int) string { return arms()[arm].name })

func (r *results) gradientTable() report.Table {
	of := func(figure func(layerError) float64) func(int) []float64 {
		return func(arm int) []float64 { return r.gradient(arm, figure) }
	}
	walked := func(arm int) []float64 { return r.walked(arm, summed) }
	return report.Fill(report.Table{Name: "gradients", Title: "Error of gradients against float64, in percent, mean of weights and seeds"},
		trainedArms(), armName,
		report.Mean("of a batch", of(relative)), report.Deviation("standard deviation", of(relative)),
		report.Mean("1 - cosine", of(distance)),
		report.Mean("bias", of(projection)), report.Deviation("standard deviation", of(projection)),
		report.Mean(fmt.Sprintf("of the mean of %d batches", r.study.batches), of(meanOver(r.study.batches))),
		report.Mean("squared error that is the same in all batches", of(persistent)),
		report.Mean(fmt.Sprintf("of the sum of %d steps", r.study.walk), walked), report.Deviation("standard deviation", walked))
}

func (r *results) additionTable() report.Table {
	of := func(figure func(additionError) float64) func(int) []float64 {
		return func(way int) []float64 { return r.added(way, figure) }
	}
	return report.Fill(report.Table{
		Name: "additions",
		Title: "Products of the same operands in E4M3 that are added in different ways, against exact " +
			"sums, in percent, mean of all products of a pass",
	}, report.Places(len(additions())), report.Cell("", func(way int) string { return additions()[way].name }),
		report.Mean("error", of(addedError)), report.Deviation("standard deviation", of(addedError)),
		report.Mean("bias", of(addedBias)), report.Deviation("standard deviation", of(addedBias)))
}

// curves are the training losses, in common and then apart.
func (r *results) curves() (all report.Curves) {
	for _, f := range r.seeds {
		all = append(all, report.Curve{Seed: f.seed, Arm: "common", Values: f.root})
		for i, a := range arms() {
			all = append(all, report.Curve{Seed: f.seed, Arm: a.name, First: r.study.common, Values: f.arms[i].losses})
		}
	}
	return all
}
