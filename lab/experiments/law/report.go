package law

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/lab/training"
	"github.com/octavo-fp8/octavo/plan"
)

// once names an arm on the whole text.
func once(name string) string { return name + ", once" }

func (s *sweep) goals() []report.Goal {
	return []report.Goal{
		declared().Judge("fp4-fp8", s.over(fp4, fp8, trained)),
		declared().Judge("fp4-fp6", s.over(fp4, fp6, trained)),
		declared().Judge("fp4-bf16", s.over(fp4, bf16, trained)),
		declared().Judge("fp6-fp8", s.over(fp6, fp8, trained)),
		declared().Judge("fp8-bf16", s.over(fp8, bf16, trained)),
		declared().Judge("bf16-fp32", s.over(bf16, full[32], trained)),
		declared().Judge("layouts-of-6", s.over(fp6m, fp6, trained)),

		declared().Judge("effective-fp4", s.effective(fp4Forward)),
		declared().Judge("effective-fp4-weights", s.effective(fp4Weights)),
		declared().Judge("effective-fp4-sun", s.effective(fp4Weights)),
		declared().Judge("effective-fp6", s.effective(fp6)),
		declared().Judge("effective-fp8", s.effective(fp8)),
		declared().Judge("trained-out", s.gain()),

		declared().Judge("once-fp4-fp8", s.over(once(fp4), once(fp8), heldOut)),
		declared().Judge("once-fp6-fp8", s.over(once(fp6), once(fp8), heldOut)),
		declared().Judge("once-fp8-bf16", s.over(once(fp8), once(bf16), heldOut)),
		declared().Judge("once-bf16-fp32", s.over(once(bf16), once(full[32]), heldOut)),

		declared().Judge("half-the-parameters", s.over(full[16], full[8], trained)),
		declared().Judge("three-bits", s.over(threeBits, fp4, trained)),
	}
}

// equalCost are the arms that cost the same, and pay for what they multiply in.
var equalCost = []string{full[32], bf16, fp8, fp6, fp4}

func newReport(p published, s *sweep) (*report.Report, error) {
	predictions, err := s.predictionTable()
	if err != nil {
		return nil, err
	}
	return &report.Report{
		Goals:    s.goals(),
		Findings: append(p.findings(), s.findings()...),
		Limits: []string{
			fmt.Sprintf("Our models have %.0f to %.0f parameters in their linear layers and see %.1f million bytes. The laws were fitted on 30 million parameters and 1.5 billion tokens or more, and on data of which nothing comes twice: for our sizes both are extrapolations by three orders of magnitude. What is tested is what they say of order and of effective parameters, and no loss.",
				s.params(full[32]), s.params(full[4]), s.tokens(fp8)/1e6),
			fmt.Sprintf("Most models see %.0f kB of text %.0f times, each seed another part; their loss is the mean of the last tenth of the steps, on that text. Held-out loss is judged of models that see the whole text (%d bytes), %.1f times.",
				float64(s.cut)/1024, s.tokens(fp8)/float64(s.cut), s.text, s.tokens(fp8)/float64(s.text)),
			"FP8, FP6 and FP4 are rounded to, with a scale that is a power of two for each 1x128 or 128x128 block, and multiplied in FP32; gradients are rounded at random, and in \"forward\" and \"weights\" not at all. BF16 is rounded to. Embedding, attention scores and head are FP32 in all and count in no cost; they grow with the width, which favours few bits.",
			"Kumar et al. rounded to integers in the forward pass, with one scale for a tensor of activations; Sun et al. rounded weights in both passes and inputs in the backward pass. \"FP4 forward\" and \"FP4 weights\" come closest.",
			"One learning rate and one depth for all widths.",
		},
		Charts: []chart.Chart{
			s.chart(),
			// From what effective parameters are read.
			report.Draw(chart.Chart{
				Title: "Own sweep: loss by parameters, on text seen again and again", X: "parameters in linear layers", Y: "nats per byte", LogX: true,
			}, func(p *report.Plot) {
				for _, bits := range paidFor {
					p.AddPoint(chart.Series{Name: "FP32", Mark: chart.Joined}, s.params(full[bits]), point(s.losses(full[bits], trained)))
				}
				for _, name := range []string{bf16, fp8, fp6, fp4, fp4Forward, fp4Weights} {
					p.AddPoint(chart.Series{Name: name, Mark: chart.Dots}, s.params(name), point(s.losses(name, trained)))
				}
			}),
			p.chart(),
			report.Draw(chart.Chart{
				Title: "Published laws: best precision, parameters and tokens free", X: "cost, FLOP", Y: "bits", LogX: true, Lines: []chart.Reference{{Name: "FP8", Value: 8}, {Name: "FP4", Value: 4}},
			}, func(c *report.Plot) {
				for _, o := range p.optima {
					c.Add(chart.Series{Name: "Kumar et al."}, o.cost, o.kumar)
					c.Add(chart.Series{Name: "Sun et al."}, o.cost, o.sun)
				}
			}),
		},
		Tables: []report.Table{
			s.table(),
			predictions,
			p.table(),
			report.Fill(report.Table{Name: "seeds", Raw: true}, report.Places(len(s.jobs)),
				report.Cell("seed", func(i int) uint64 { return s.jobs[i].Seed }), report.Cell("model", func(i int) string { return s.arms[i%len(s.arms)].name }),
				report.Cell("loss, last tenth", func(i int) float64 { return trained(s.curves[i]) }), report.Cell("loss, held-out", func(i int) float64 { return heldOut(s.curves[i]) })),
			report.Write(report.Table{Name: "optimum", Title: "Best precision by cost", Raw: true, Columns: []string{"cost, FLOP", "bits, Kumar", "bits, Sun"}}, func(t *report.Table) {
				for _, o := range p.optima {
					t.Add(o.cost, o.kumar, o.sun)
				}
			}),
			report.Write(report.Table{Name: "curves", Raw: true, Columns: []string{"run", "step", "loss"}}, func(t *report.Table) {
				for i, j := range s.jobs {
					const every = 10
					for step := 0; step < len(s.curves[i].Losses); step += every {
						t.Add(j.Name, step, s.curves[i].Losses[step])
					}
				}
			}),
		},
	}, nil
}

func lowest(trainings []plan.Training) plan.Training {
	return slices.MinFunc(trainings, func(a, b plan.Training) int { return cmp.Compare(a.Loss.Total, b.Loss.Total) })
}

// findings are about what is published alone.
func (p published) findings() []report.Finding {
	best, bestSun := lowest(p.kumar), lowest(p.sun)
	cheap, dear := p.optima[0], p.optima[len(p.optima)-1]
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("Published: for models that cost what 220 million parameters in 32 bits do, on 26 billion tokens, Kumar's law has its best at %.0f bits and Sun's at %.0f. What Sun's charges for precision grows with the tokens, what Kumar's charges does not.", best.Bits, bestSun.Bits),
			report.If(best.Bits != bestSun.Bits, "The two laws disagree.", "The two laws agree.")),
		report.NewFinding(fmt.Sprintf("Published: as the cost rises from %.0e to %.0e FLOP, the best precision goes from %.1f to %.1f bits by Sun's law, and from %.1f to %.1f by Kumar's.", cheap.cost, dear.cost, cheap.sun, dear.sun, cheap.kumar, dear.kumar),
			report.If(dear.sun > cheap.sun, "Sun's wants more bits for more data;", "Sun's does not want more bits for more data;"),
			report.If(math.Abs(dear.kumar-cheap.kumar) < 0.05, "Kumar's does not.", "Kumar's best moves too.")),
		report.NewFinding("Kumar's law has an end, below which it has no loss.",
			report.If(p.tooFew != nil, fmt.Sprintf("Of 3 bits it says: %v.", p.tooFew), "3 bits are not below it.")),
	}
}

// mean returns the mean loss of an arm.
func (s *sweep) mean(name string, loss func(training.Curve) float64) float64 {
	return statistics.Mean(s.losses(name, loss))
}

// ranked returns arms in the order of their mean loss, and says it.
func (s *sweep) ranked(names []string, loss func(training.Curve) float64) (order []string, text string) {
	order = slices.Clone(names)
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(s.mean(a, loss), s.mean(b, loss)) })
	for i, name := range order {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %.3f", name, s.mean(name, loss))
	}
	return order, text
}

// findings are about the sweep alone.
func (s *sweep) findings() []report.Finding {
	var wholeText []string
	for _, name := range equalCost {
		wholeText = append(wholeText, once(name))
	}
	order, text := s.ranked(equalCost, trained)
	wholeOrder, held := s.ranked(wholeText, heldOut)
	share := func(name string) float64 { return statistics.Mean(s.effective(name)) }
	gain := statistics.OfMean(s.gain(), 1)
	return []report.Finding{
		report.NewFinding(fmt.Sprintf("Our own sweep, at equal cost, on text that is seen again and again: %s.", text),
			report.If(order[0] == fp4, "The fewest bits have the least mean.", "The fewest bits do not have the least mean."),
			report.If(order[len(order)-1] == full[32], "FP32 has the largest.", "FP32 does not have the largest.")).AtLength(),
		report.NewFinding(fmt.Sprintf("Held-out loss, at equal cost, on text that is seen once: %s.", held),
			report.If(wholeOrder[0] == once(fp4), "There the fewest bits have the least mean.",
				"There the fewest bits do not have the least mean.")).AtLength(),
		report.NewFinding(fmt.Sprintf("Of the parameters count, by the loss on the text that is trained on: in FP8 %.2f, in FP6 %.2f, in FP4 %.2f; in FP4 %.2f where gradients are not rounded, and %.2f where only weights are.",
			share(fp8), share(fp6), share(fp4), share(fp4Forward), share(fp4Weights)),
			report.If(share(fp4Weights)-share(fp4Forward) > share(fp4Forward)-share(fp4), "Of what FP4 costs beyond its weights, inputs take more than gradients.", "Of what FP4 costs beyond its weights, gradients take no less than inputs.")).AtLength(),
		report.NewFinding(fmt.Sprintf("Twice the training gains %.2f (interval over seeds %.2f to %.2f) of what twice the parameters do. That this is below 1 is a weak requirement: it says that the models lack parameters more than training, and not that they are trained out.%s",
			gain.At, gain.Low, gain.High, report.Outcomes(s.goals(), "As declared", "trained-out"))),
	}
}

// chart shows the models of equal cost.
func (s *sweep) chart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Own sweep: loss at equal cost", Y: "nats per byte"}}
	for _, name := range equalCost {
		p.AddPoint(chart.Series{Name: "trained on, seen again and again", Mark: chart.Joined}, name, point(s.losses(name, trained)))
		p.AddPoint(chart.Series{Name: "held out, text seen once", Mark: chart.Joined, Dashed: true}, name, point(s.losses(once(name), heldOut)))
	}
	return p.Chart
}

// point is the mean of values and how far they spread.
func point(values []float64) chart.Point {
	return chart.Point{Y: statistics.Mean(values), Spread: (slices.Max(values) - slices.Min(values)) / 2}
}

func (s *sweep) table() report.Table {
	name := func(i int) string { return s.arms[i].name }
	losses := func(i int) []float64 { return s.losses(name(i), trained) }
	return report.Fill(report.Table{Name: "sweep", Title: "Own sweep: means over seeds"}, report.Places(len(s.arms)),
		report.Cell("model", name), report.Cell("bits paid for", func(i int) int { return s.arms[i].pays }),
		report.Cell("width", func(i int) int { return s.jobs[i].Config.Dim }),
		report.Cell("parameters in linear layers", func(i int) int { return linearParams(s.jobs[i].Config) }),
		report.Cell("steps", func(i int) int { return s.jobs[i].Setup.Steps }),
		report.Cell("cost, 10^12 bit-bytes", func(i int) float64 { return s.cost(name(i)) }),
		report.Mean("loss, last tenth", losses), report.StandardError("standard error", losses),
		report.Mean("loss, held-out", func(i int) []float64 { return s.losses(name(i), heldOut) }),
		report.Cell("effective parameters, share", func(i int) float64 {
			if s.arms[i].once {
				return math.NaN() // it is of other text
			}
			return statistics.Mean(s.effective(name(i)))
		}))
}

// predictionTable is what the laws say of the sweep's own models, before it is trained.
func (s *sweep) predictionTable() (report.Table, error) {
	t := report.Table{
		Name: "predictions", Title: "What the laws say of these very sizes, beside what came out: shares of the parameters that count",
		Columns: []string{"model", "parameters in linear layers", "bytes seen", "Kumar", "Sun", "found", "effective parameters, Kumar", "effective parameters, Sun", "effective parameters, found"},
	}
	for _, a := range s.arms {
		if !slices.Contains([]string{full[32], bf16, fp8, fp6, fp6m, fp4, fp4Forward, fp4Weights}, a.name) {
			continue
		}
		n := s.params(a.name)
		p, err := predict(n, s.tokens(a.name), a.weights, a.activations)
		if err != nil {
			return t, fmt.Errorf("%s: %w", a.name, err)
		}
		found := statistics.Mean(s.effective(a.name))
		t.Add(a.name, int(n), int(s.tokens(a.name)), p.kumar, p.sun, found, n*p.kumar, n*p.sun, n*found)
	}
	return t, nil
}

// chart shows both laws above their own best, since their losses are of different data. Few
// bits come first.
func (p published) chart() chart.Chart {
	c := report.Plot{Chart: chart.Chart{Title: "Published laws at equal cost: loss above the best", X: "bits", Y: "nats per token", Zero: true}}
	for i, k := range slices.Backward(p.kumar) {
		label := fmt.Sprintf("%.0f", k.Bits)
		c.Add(chart.Series{Name: "Kumar et al.", Mark: chart.Joined}, label, k.Loss.Total-lowest(p.kumar).Loss.Total)
		c.Add(chart.Series{Name: "Sun et al.", Mark: chart.Joined}, label, p.sun[i].Loss.Total-lowest(p.sun).Loss.Total)
	}
	return c.Chart
}

func (p published) table() report.Table {
	t := report.Table{
		Name: "published", Title: "Published: what the laws say where parameters times bits are 220 million times 32, on 26 billion tokens",
		Columns: []string{"bits", "parameters, million", "loss, Kumar", "of that for precision", "format, Sun", "loss, Sun", "of that for precision"},
	}
	for i, k := range p.kumar {
		s := p.sun[i]
		t.Add(int(k.Bits), k.N/1e6, k.Loss.Total, k.Loss.Precision, fmt.Sprintf("E%.0fM%.0f", s.Format.Exponent, s.Format.Mantissa), s.Loss.Total, s.Loss.Precision)
	}
	return t
}
