package outliers

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// samples returns one value of each seed.
func (s *study) samples(figure func(seedFigures) float64) []float64 {
	return statistics.Each(s.seeds, figure)
}

// last are the figures of all layers at the last look.
func last(all []alignment, layers int) []alignment { return all[len(all)-layers:] }

// meanOf is the mean over layers.
func meanOf(all []alignment, figure func(alignment) float64) (mean float64) {
	for _, a := range all {
		mean += figure(a) / float64(len(all))
	}
	return mean
}

// atEnd is a figure at the end of training, the mean over layers.
func (s *study) atEnd(of func(seedFigures) []alignment, figure func(alignment) float64) []float64 {
	return s.samples(func(f seedFigures) float64 { return meanOf(last(of(f), s.plan.layers), figure) })
}

// byDecay is by how much a figure at the end of training is larger with weight decay.
func (s *study) byDecay(figure func(alignment) float64) []float64 {
	return statistics.Differences(s.atEnd(decayedOf, figure), s.atEnd(freeOf, figure))
}

// growth is the logarithm to base 2 of the largest |z| of the late window over the largest
// of what a late scale has seen, of the layer where that is most.
func (s *study) growth(of func(seedFigures) course) []float64 {
	return s.samples(func(f seedFigures) float64 {
		amax := of(f).amax
		most := math.Inf(-1)
		for layer := range s.plan.layers {
			most = max(most, math.Log2(largestOf(amax[s.plan.window:], layer)/largestOf(amax[max(0, s.plan.window-history):s.plan.window], layer)))
		}
		return most
	})
}

func largestOf(amax [][]float64, layer int) (largest float64) {
	for _, step := range amax {
		largest = max(largest, step[layer])
	}
	return largest
}

// error is the error of the down projection's output under an arm: the root mean square
// over the steps that are looked at and over layers.
func (c course) error(name string) float64 {
	i := armIndex(name)
	var squares float64
	for _, step := range c.arms {
		squares += step[i].output * step[i].output / float64(len(c.arms))
	}
	return math.Sqrt(squares)
}

// mean is that of a figure of an arm over the steps that are looked at.
func (c course) mean(name string, figure func(fidelity) float64) (mean float64) {
	i := armIndex(name)
	for _, step := range c.arms {
		mean += figure(step[i]) / float64(len(c.arms))
	}
	return mean
}

// ratio is the logarithm to base 2 of an arm's error over that of another on the same
// tensors.
func (s *study) ratio(of func(seedFigures) course, a, b string) []float64 {
	return s.samples(func(f seedFigures) float64 { return math.Log2(of(f).error(a) / of(f).error(b)) })
}

// gap is by how many percent the held-out loss of weights is higher if inputs are quantized
// under an arm: of the mean of the steps that are looked at.
func (f seedFigures) gap(name string) float64 {
	return percentAbove(f.growing.under[lossIndex(name)], f.growing.heldOut)
}

// trainedGap is by how many percent the held-out loss of a run is above that of FP32.
func (f seedFigures) trainedGap(name string) float64 {
	i := slices.IndexFunc(f.runs, func(c course) bool { return c.name == name })
	return percentAbove(f.runs[i].heldOut, f.growing.heldOut)
}

func percentAbove(losses, others []float64) float64 {
	return 100 * (statistics.Mean(losses)/statistics.Mean(others) - 1)
}

// lossIndex returns the place of an arm among those of which the loss is taken.
func lossIndex(name string) int {
	return slices.IndexFunc(lossArms(), func(a arm) bool { return a.name == name })
}

func lossArms() []arm { return slices.DeleteFunc(arms(), func(a arm) bool { return !a.loss }) }

func (s *study) gaps(name string) []float64 {
	return s.samples(func(f seedFigures) float64 { return f.gap(name) })
}

func (s *study) trainedGaps(name string) []float64 {
	return s.samples(func(f seedFigures) float64 { return f.trainedGap(name) })
}

func growingOf(f seedFigures) course      { return f.growing }
func calmOf(f seedFigures) course         { return f.calm }
func decayedOf(f seedFigures) []alignment { return f.decayed }
func freeOf(f seedFigures) []alignment    { return f.free }

func (s *study) report() *report.Report {
	goals := s.goals()
	return &report.Report{
		Goals: goals,
		Findings: []report.Finding{
			s.alignmentFinding(goals),
			report.NewFinding(fmt.Sprintf("In the %d steps in which a late scale stays, the largest |z| comes to %s times what the scale has seen where weights are fine-tuned, and to %s times where training goes on as before. The error of the down projection's output is %s and %s times that of a scale just in time. The first figure is of what was made, and no result: control growth checks that outliers grew as fine-tuning was chosen to make them.%s",
				s.plan.window, times(s.growth(growingOf)), times(s.growth(calmOf)),
				times(s.ratio(growingOf, plainLate, plainNow)), times(s.ratio(calmOf, plainLate, plainNow)),
				report.Outcomes(goals, "As declared", "growth", "stale", "stale-calm"))),
			s.smoothingFinding(goals),
			report.NewFinding(fmt.Sprintf("Scales of 1x128 have %s times the error of one scale for the tensor just in time, and %s times where both are late.%s",
				times(s.ratio(growingOf, blocksNow, plainNow)), times(s.ratio(growingOf, blocksLate, plainLate)),
				report.Outcomes(goals, "As declared", "blocks-now", "stale-blocks"))),
			report.NewFinding(fmt.Sprintf("Quantizing the inputs of the same weights under late scales changes the held-out loss by %s, by %s with Smooth-SwiGLU as late, and by %s where only the tensor's scale is; under scales renewed in each step by %s, just in time by %s, and by %s in blocks of 1x128. Runs that are trained so are above FP32 by %s, in each step by %s, and just in time by %s.%s",
				change(s.gaps(plainLate)), change(s.gaps(channelLate)), change(s.gaps(channelFresh)), change(s.gaps(plainEach)), change(s.gaps(plainNow)), change(s.gaps(blocksNow)),
				change(s.trainedGaps(plainLate)), change(s.trainedGaps(plainEach)), change(s.trainedGaps(plainNow)),
				report.Outcomes(goals, "As declared", "loss-late", "loss-each-step", "loss-now", "trained-late", "trained-each-step", "trained-now"))),
		},
		Limits: s.limits(),
		Charts: []chart.Chart{
			// Of means over seeds and layers.
			report.Draw(chart.Chart{
				Title: "Branches of a neuron: median |cosine|", X: "step", Y: "|cosine|", Zero: true,
				Lines: []chart.Reference{{Name: "random directions", Value: cosineAtRandom(s.plan.dim)}},
			}, func(p *report.Plot) {
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
					for look := range looks + 1 {
						at := look * s.plan.layers
						p.Add(chart.Series{Name: line.name, Mark: chart.Joined, Dashed: line.dashed}, line.of(s.seeds[0])[at].step,
							s.samples(func(f seedFigures) float64 { return meanOf(line.of(f)[at:at+s.plan.layers], line.figure) })...)
					}
				}
			}),
			// Of geometric means over seeds, of the layer with the largest.
			report.Draw(chart.Chart{Title: "Largest input of a down projection", X: "step", Y: "|z|", LogY: true,
				Lines: []chart.Reference{{Name: "late scales stay from here on", Value: float64(s.plan.window), Vertical: true}}}, func(p *report.Plot) {
				add := func(name string, of func(seedFigures) course) {
					for step := range 2 * s.plan.window {
						p.Add(chart.Series{Name: name}, step, factor(s.samples(func(f seedFigures) float64 {
							return math.Log2(max(0, slices.Max(of(f).amax[step])))
						})))
					}
				}
				add("fine-tuned", growingOf)
				add("training as before", calmOf)
			}),
			report.Draw(chart.Chart{
				Title: "Error of the down projection's output, fine-tuned", X: "step", Y: "share of its norm", LogY: true,
			}, func(p *report.Plot) {
				for i, a := range arms() {
					for look := range s.seeds[0].growing.arms {
						p.Add(chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.smooth}, s.lookedAt(look),
							factor(s.samples(func(f seedFigures) float64 { return math.Log2(f.growing.arms[look][i].output) })))
					}
				}
			}),
			report.Draw(chart.Chart{
				Title: "Held-out loss above that of FP32, of the same weights, fine-tuned: mean over seeds", X: "step", Y: "percent", Zero: true,
			}, func(p *report.Plot) {
				for i, a := range lossArms() {
					s.addGaps(p, chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.smooth}, func(f seedFigures) []float64 { return f.growing.under[i] })
				}
			}),
			report.Draw(chart.Chart{
				Title: "Held-out loss of runs above that of FP32, fine-tuned: mean over seeds", X: "step", Y: "percent", Zero: true,
			}, func(p *report.Plot) {
				for i, run := range s.seeds[0].runs {
					s.addGaps(p, chart.Series{Name: run.name, Mark: chart.Joined}, func(f seedFigures) []float64 { return f.runs[i].heldOut })
				}
			}),
		},
		Tables: s.tables(),
	}
}

// goals are what is declared, each by a value of each seed.
func (s *study) goals() []report.Goal {
	return []report.Goal{
		declared().Judge("alignment", s.atEnd(freeOf, alignment.top)),
		declared().Judge("alignment-by-decay", s.byDecay(alignment.top)),
		declared().Judge("outlier-by-decay", s.byDecay(alignment.logOutlier)),
		declared().Judge("growth", s.growth(growingOf)),
		declared().Judge("stale", s.ratio(growingOf, plainLate, plainNow)),
		declared().Judge("stale-blocks", s.ratio(growingOf, blocksLate, blocksNow)),
		declared().Judge("stale-calm", s.ratio(calmOf, plainLate, plainNow)),
		declared().Judge("smoothing-late", s.ratio(growingOf, channelLate, plainLate)),
		declared().Judge("smoothing-token-late", s.ratio(growingOf, tokenLate, plainLate)),
		declared().Judge("smoothing-fresh", s.ratio(growingOf, channelFresh, plainLate)),
		declared().Judge("smoothing-each-step", s.ratio(growingOf, channelEach, plainEach)),
		declared().Judge("smoothing-now", s.ratio(growingOf, channelNow, plainNow)),
		declared().Judge("each-step", s.ratio(growingOf, plainEach, plainNow)),
		declared().Judge("blocks-now", s.ratio(growingOf, blocksNow, plainNow)),
		declared().Judge("loss-late", s.gaps(plainLate)),
		declared().Judge("loss-smoothing-late", statistics.Differences(s.gaps(channelLate), s.gaps(plainLate))),
		declared().Judge("loss-smoothing-fresh", statistics.Differences(s.gaps(channelFresh), s.gaps(plainLate))),
		declared().Judge("loss-each-step", s.gaps(plainEach)),
		declared().Judge("loss-now", s.gaps(plainNow)),
		declared().Judge("loss-smoothing-now", s.gaps(channelNow)),
		declared().Judge("loss-blocks-now", s.gaps(blocksNow)),
		declared().Judge("trained-late", statistics.Differences(s.trainedGaps(plainLate), s.trainedGaps(plainNow))),
		declared().Judge("trained-each-step", statistics.Differences(s.trainedGaps(plainEach), s.trainedGaps(plainNow))),
		declared().Judge("trained-now", s.trainedGaps(plainNow)),
	}
}

func (s *study) limits() []string {
	p := s.plan
	tokens := p.batch * p.seq
	lines := []string{
		fmt.Sprintf("%d seeds of weights and batches of one text, in a model of %d layers of width %d trained on %d bytes. In Fishman et al. outliers appear after 200 billion tokens in one of 7 billion parameters, at a weight decay of 0.1 and a rate of 3e-4; here neurons align by themselves in %d steps at a decay of %v and a rate of %v, both higher so that weights come to an equilibrium in that time.",
			p.seeds, p.layers, p.dim, p.base*tokens, p.base, trainingDecay, trainingRate),
		fmt.Sprintf("What makes outliers grow while scales are late is fine-tuning at a rate of %v, warmed up in %d steps, without weight decay and with new moments of the optimizer: nobody multiplies weights, but the rate is chosen so that they grow within the %d steps.",
			tuningRate, tuningWarmup, p.window),
		fmt.Sprintf("A late scale is the largest of %d steps and stays for %d, without margin. Smoothing that is late takes its scales from the same steps. Only inputs of linear layers are delayed; weights and gradients are scaled just in time by tensor in all runs.",
			history, p.window),
		"Errors of outputs are of all ways on the same tensors, those of training in FP32, with weights that are not quantized. Losses under a way are first those of the same weights, and then those of runs of their own, in which errors come back and which any difference sets on another course.",
	}
	if s.options.Activations == nil {
		lines = append(lines, "--activations was not given: what a real model's are like is not shown.")
	}
	return lines
}

// factor is 2 to the mean of logarithms.
func factor(logarithms []float64) float64 { return math.Exp2(statistics.Mean(logarithms)) }

// times is a mean factor over seeds with its interval, of logarithms to base 2.
func times(logarithms []float64) string {
	m := statistics.OfMean(logarithms, 1)
	return fmt.Sprintf("%.2f (%.2f to %.2f)", math.Exp2(m.At), math.Exp2(m.Low), math.Exp2(m.High))
}

// change is a mean change of a loss over seeds with its interval.
func change(values []float64) string { return report.Interval(values, "%+.2f", " %") }

func (s *study) alignmentFinding(goals []report.Goal) report.Finding {
	at := func(of func(seedFigures) []alignment, figure func(alignment) float64) string {
		return report.Interval(s.atEnd(of, figure), "%.2f", "")
	}
	return report.NewFinding(fmt.Sprintf("After %d steps the median |cosine| of the two branches, of the twentieth of the neurons with the largest gain, is %s with weight decay (in brackets the interval over seeds) and %s without; of random directions it is %.2f. Of all neurons it is %s and %s. The largest |z| is %s times the root mean square with decay, and %s without.%s",
		s.plan.base, at(decayedOf, alignment.top), at(freeOf, alignment.top), cosineAtRandom(s.plan.dim),
		at(decayedOf, alignment.all), at(freeOf, alignment.all),
		times(s.atEnd(decayedOf, alignment.logOutlier)), times(s.atEnd(freeOf, alignment.logOutlier)),
		report.Outcomes(goals, "As declared", "alignment", "alignment-by-decay", "outlier-by-decay")))
}

func (s *study) smoothingFinding(goals []report.Goal) report.Finding {
	over := func(a, b string) string { return times(s.ratio(growingOf, a, b)) }
	return report.NewFinding(fmt.Sprintf("Smooth-SwiGLU per channel has %s times the error of plain SwiGLU where both are late, %s times where both are renewed in each step, and %s times where both are just in time. Where its own scales are just in time and the tensor's is late, it has %s times that of plain SwiGLU.%s",
		over(channelLate, plainLate), over(channelEach, plainEach), over(channelNow, plainNow), over(channelFresh, plainLate),
		report.Outcomes(goals, "As declared", "smoothing-late", "smoothing-token-late", "smoothing-each-step", "smoothing-now", "smoothing-fresh")))
}

// lookedAt returns the step of a look.
func (s *study) lookedAt(look int) int { return s.plan.window + (look+1)*s.plan.every - 1 }

// addGaps adds a series of losses above those of FP32, by looks.
func (s *study) addGaps(p *report.Plot, of chart.Series, losses func(seedFigures) []float64) {
	for look := range losses(s.seeds[0]) {
		p.Add(of, s.lookedAt(look), s.samples(func(f seedFigures) float64 { return 100 * (losses(f)[look]/f.growing.heldOut[look] - 1) })...)
	}
}

func (s *study) tables() []report.Table {
	tables := []report.Table{
		s.armTable("fine-tuned", growingOf),
		s.armTable("calm", calmOf),
		s.lossTable(),
		report.Write(report.Table{
			Name: "seeds", Title: "All values of all seeds", Raw: true,
			Columns: []string{"seed", "what", "value"},
		}, func(t *report.Table) {
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
		}),
	}
	if len(s.given) > 0 {
		tables = append(tables, s.givenTable())
	}
	return tables
}

// armTable shows what arms make of the same tensors.
func (s *study) armTable(name string, of func(seedFigures) course) report.Table {
	mean := func(figure func(fidelity) float64) func(arm) []float64 {
		return func(a arm) []float64 {
			return s.samples(func(f seedFigures) float64 { return of(f).mean(a.name, figure) })
		}
	}
	errors := func(a arm) []float64 {
		return s.samples(func(f seedFigures) float64 { return math.Log2(of(f).error(a.name)) })
	}
	saturated := mean(func(f fidelity) float64 { return 100 * f.saturated })
	return report.Fill(report.Table{
		Name: name, Title: map[string]string{
			"fine-tuned": "Inputs of down projections while late scales stay, fine-tuned: the same tensors in all ways, means over seeds",
			"calm":       "The same where training goes on as before",
		}[name],
	}, arms(), report.Cell("input", func(a arm) string { return a.name }),
		report.Cell("error of the output %", func(a arm) float64 { return 100 * factor(errors(a)) }),
		report.StandardError("standard error of its logarithm to base 2", errors),
		report.Cell("over that of the tensor just in time", func(a arm) float64 { return factor(s.ratio(of, a.name, plainNow)) }),
		report.Mean("saturated %", saturated), report.StandardError("standard error", saturated),
		report.Mean("flushed %", mean(func(f fidelity) float64 { return 100 * f.flushed })),
		report.Mean("largest input over what its scale holds", mean(func(f fidelity) float64 { return f.reach })))
}

// judgedLoss is a row of the table of losses.
type judgedLoss struct {
	name, what string
	gaps       []float64
}

func (s *study) lossTable() report.Table {
	var rows []judgedLoss
	for _, a := range lossArms() {
		rows = append(rows, judgedLoss{a.name, "the same weights", s.gaps(a.name)})
	}
	for _, run := range s.seeds[0].runs {
		rows = append(rows, judgedLoss{run.name, "a run of its own", s.trainedGaps(run.name)})
	}
	gaps := func(l judgedLoss) []float64 { return l.gaps }
	return report.Fill(report.Table{
		Name: "losses", Title: "Held-out loss above that of FP32, fine-tuned while late scales stay: means over seeds",
	}, rows,
		report.Cell("inputs of linear layers", func(l judgedLoss) string { return l.name }),
		report.Cell("", func(l judgedLoss) string { return l.what }),
		report.Mean("held-out loss above FP32 %", gaps), report.StandardError("standard error", gaps))
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
