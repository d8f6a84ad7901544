package sensitivity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/nn"
)

// results are what came of all seeds. Figures are lists of a value of each seed, in percent.
type results struct {
	study  study
	params []string
	seeds  []found
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

// gradient is a figure of the gradients of an arm, the median of all parameters: the gradient
// of one or two may nearly vanish, and its error then says nothing of the others.
func (r *results) gradient(arm int, figure func(gradientError) float64) []float64 {
	return r.of(func(f found) float64 {
		var all []float64
		for _, e := range f.arms[arm].gradients {
			all = append(all, 100*figure(e))
		}
		return statistics.Median(all)
	})
}

// relativeOf is the relative error of an arm's gradients.
func (r *results) relativeOf(arm int) []float64 { return r.gradient(arm, gradientError.relative) }

// times is by how many powers of two the relative error of the first arm is that of the
// second, seed by seed.
func (r *results) times(first, second int) (logarithms []float64) {
	a, b := r.relativeOf(first), r.relativeOf(second)
	for i := range a {
		logarithms = append(logarithms, math.Log2(a[i]/b[i]))
	}
	return logarithms
}

// gapAbove is the gap of the first arm less that of the second, seed by seed.
func (r *results) gapAbove(first, second int) []float64 {
	return statistics.Differences(r.gap(first), r.gap(second))
}

// judged are the values of each hypothesis and control, one of each seed.
func (r *results) judged() map[string][]float64 {
	all := map[string][]float64{
		"practice-loss": r.gap(practiceArm),
		"sees-residual": r.times(armOf(nn.ClassResidual, inFP8), armOf(nn.ClassProducts, inBF16)),
		"sees-fp4":      r.times(fp4Arm, armOf(nn.ClassProducts, inFP8)),
		"sees-all-fp8":  r.times(allFP8Arm, practiceArm),
		"loss-fp4":      r.gap(fp4Arm),
		"loss-all-fp8":  r.gap(allFP8Arm),
		"loss-cut-off":  r.gap(cutArm),
		"bias-cut-off":  r.gradient(cutArm, gradientError.bias),
	}
	for _, p := range pairs() {
		more, less := armOf(p.more, inFP8), armOf(p.less, inFP8)
		all["gradient-"+p.String()] = r.times(more, less)
		if p.less == nn.ClassProducts {
			all["loss-"+p.String()] = r.gapAbove(more, less)
		}
	}
	for _, class := range nn.OperatorClasses() {
		all["bf16-loss-"+class.String()] = r.gap(armOf(class, inBF16))
		if class == nn.ClassReductions {
			continue // whose bias has no stable sign, and which are not above themselves
		}
		all["bias-"+class.String()] = r.gradient(armOf(class, inFP8), gradientError.bias)
		all["bf16-reductions-over-"+class.String()] =
			r.times(armOf(nn.ClassReductions, inBF16), armOf(class, inBF16))
	}
	return all
}

func (r *results) report() *report.Report {
	return &report.Report{
		Goals:    declared().JudgeAll(r.judged()),
		Findings: []report.Finding{r.orderFinding(), r.practiceFinding(), r.lossFinding()},
		Limits:   r.limits(),
		Charts: []chart.Chart{
			bars(chart.Chart{
				Title: "Error of gradients with one class of operators rounded, mean of seeds; in brackets " +
					"what practice computes it in",
				Y: "percent of the gradient", LogY: true,
			}, r.relativeOf),
			bars(chart.Chart{
				Title: "Held-out loss above that of FP32 after training with one class rounded, mean of seeds",
				Y:     "percent", Zero: true,
			}, r.gap),
			bars(chart.Chart{
				Title: "The same before it trains: of one model, with one class of its forward pass rounded",
				Y:     "percent", Zero: true,
			}, r.gapBefore),
		},
		Tables: []report.Table{
			r.classTable(),
			report.Write(report.Table{Name: "losses", Title: "Held-out loss in nats per byte, and steps whose " +
				"gradient was not finite", Columns: []string{"seed", "arm", "before", "after", "skipped steps"}}, func(t *report.Table) {
				for _, f := range r.seeds {
					for i, a := range arms() {
						t.Add(fmt.Sprint(f.seed), a.name, f.arms[i].before, f.arms[i].after, f.arms[i].skipped)
					}
				}
			}),
			report.Write(report.Table{
				Name: "parameters", Title: "Error of the gradient of each parameter", Raw: true,
				Columns: []string{"seed", "arm", "parameter", "error %", "cosine", "bias %"},
			}, func(t *report.Table) {
				for _, f := range r.seeds {
					for i, a := range arms() {
						for j, e := range f.arms[i].gradients {
							t.Add(fmt.Sprint(f.seed), a.name, r.params[j],
								100*e.relative(), 1-e.distance(), 100*e.bias())
						}
					}
				}
			}),
			r.curves().Table("curves", "seed", "arm", "step", "loss"),
		},
	}
}

// order lists classes with a figure in FP8, the largest mean first.
func order(figure func(arm int) []float64, format string) string {
	mean := func(c nn.OperatorClass) float64 { return statistics.Mean(figure(armOf(c, inFP8))) }
	classes := nn.OperatorClasses()
	slices.SortStableFunc(classes, func(a, b nn.OperatorClass) int {
		return cmp.Compare(mean(b), mean(a))
	})
	var all []string
	for _, c := range classes {
		all = append(all, fmt.Sprintf("%v "+format+" %%", c, mean(c)))
	}
	return strings.Join(all, ", ")
}

// orderFinding says in which order classes are sensitive.
func (r *results) orderFinding() report.Finding {
	as, against := 0, 0
	for _, p := range pairs() {
		more := r.times(armOf(p.more, inFP8), armOf(p.less, inFP8))
		d := statistics.OfMean(more, len(pairs()))
		switch {
		case d.Low > 0:
			as++
		case d.High < 0:
			against++
		}
	}
	return report.NewFinding(
		fmt.Sprintf("Gradients are off, with one class in FP8, by %s of their length. Of %d pairs of "+
			"classes that practice orders, gradients order %d as practice does, with an interval that "+
			"leaves out 0, and %d the other way.",
			order(r.relativeOf, "%.3g"), len(pairs()), as, against),
		report.If(against == 0,
			"So nothing in gradients speaks against the order that practice assumes.",
			"So practice does not follow the error of gradients: what it keeps in more than FP8 is also "+
				"what costs little to keep.")).AtLength()
}

// practiceFinding says what it is worth to keep in BF16 and FP32 what practice does.
func (r *results) practiceFinding() report.Finding {
	mean := func(arm int) float64 { return statistics.Mean(r.relativeOf(arm)) }
	products := mean(armOf(nn.ClassProducts, inFP8))
	practice, all := mean(practiceArm), mean(allFP8Arm)
	return report.NewFinding(
		fmt.Sprintf("Gradients are off by %.3g %% with products alone in FP8, by %.3g %% if the rest "+
			"is as in practice, BF16 but for sums, and by %.3g %% with all classes in FP8. The rest in "+
			"BF16 so multiplies the error by %.3g, and in FP8 by %.3g.",
			products, practice, all, practice/products, all/products),
		report.If(practice < 1.1*products,
			"BF16 adds less than a tenth to what FP8 products do.",
			"BF16 adds a tenth and more to what FP8 products do."),
		report.If(all > 2*products,
			"FP8 in all classes is more than twice as far off as in products alone.",
			"FP8 in all classes is at most twice as far off as in products alone.")).AtLength()
}

// lossFinding says what the loss tells apart.
func (r *results) lossFinding() report.Finding {
	seen := 0
	for _, c := range nn.OperatorClasses() {
		if d := statistics.OfMean(r.gap(armOf(c, inFP8)), len(nn.OperatorClasses())); d.Low > 0 {
			seen++
		}
	}
	return report.NewFinding(
		fmt.Sprintf("After %d steps the held-out loss is above that of FP32, with one class in FP8, "+
			"by %s. That is seen, with an interval above 0, in %d of %d classes.",
			r.study.apart, order(r.gap, "%+.3g"), seen, len(nn.OperatorClasses())),
		report.If(seen == len(nn.OperatorClasses()),
			"So the loss sees each class.",
			"So the loss does not see all classes, and orders only those it sees.")).AtLength()
}

func (r *results) limits() []string {
	c := r.study.config
	return []string{
		fmt.Sprintf("Models have %d layers of width %d and %d and see %d bytes of one text. What goes "+
			"wrong in deep models, whose residual stream is rounded more often, or late in training, "+
			"when outliers have grown, cannot show here.",
			c.Layers, c.Dim, c.Hidden, (r.study.common+r.study.apart)*r.study.sequences*c.Context),
		fmt.Sprintf("All arms begin where FP32 is after %d steps of %d, with moments of the optimizer "+
			"that begin anew in all of them.",
			r.study.common, r.study.common+r.study.apart),
		"Classes are not of one size: products are many and done in three ways, the embedding is " +
			"looked up once. What is compared is what training pays for a class as a whole, which is what " +
			"practice decides on, and not a single rounding.",
		"Held-out loss is that of an arm's logits, added up in FP32 whatever the arm trains with: sums " +
			"of exponentials that are too small would make a loss too small.",
		"FP8 is E4M3 in both passes, with a scale of a power of two for 128 values, just in time; " +
			"coarser or later scales would do more harm.",
		"Sums along rows are of norms, of attention's softmax and of the loss's, one term after the " +
			"other, rounded to the format's mantissa after each: what adding in that format would be. " +
			"Kernels that add in a tree, or in FP32 and round the sum, lose far less.",
		"Practice may keep a class in BF16 or FP32 since that is cheap, whatever its sensitivity; " +
			"that it does so is no claim of an order of errors, though its reason is given as " +
			"sensitivity. MoE gating is not in these models.",
		"Errors of gradients are the median of all parameters, the gain of a norm counted as much as a " +
			"matrix, since AdamW moves each by its own gradient's size. What a class does to a few " +
			"parameters only is in the table of parameters. Gradients of FP32 are taken for the true ones.",
	}
}

// rounded is a row of the table of classes: what is rounded in an arm.
type rounded struct {
	what, in, practice string
	arm                int
}

// classTable has both measures of each arm.
func (r *results) classTable() report.Table {
	var rows []rounded
	for format, f := range formats {
		for _, class := range nn.OperatorClasses() {
			rows = append(rows, rounded{class.String(), f.name, tierOf(class).name, armOf(class, format)})
		}
	}
	rows = append(rows, rounded{"all, as in practice", "FP8, BF16, FP32", "", practiceArm}, rounded{"all", "FP8", "", allFP8Arm},
		rounded{"products", "FP4", "", fp4Arm}, rounded{"products", "FP8, cut off", "", cutArm})
	of := func(figure func(arm int) []float64) func(rounded) []float64 {
		return func(of rounded) []float64 { return figure(of.arm) }
	}
	relative, gap := of(r.relativeOf), of(r.gap)
	bias := func(of rounded) []float64 { return r.gradient(of.arm, gradientError.bias) }
	return report.Fill(report.Table{
		Name: "classes", Title: "What is rounded, its gradients and its held-out loss against FP32, " +
			"in percent, median of parameters, mean of the seeds",
	}, rows,
		report.Cell("rounded", func(of rounded) string { return of.what }), report.Cell("in", func(of rounded) string { return of.in }),
		report.Cell("practice", func(of rounded) string { return of.practice }),
		report.Mean("gradient error", relative), report.Deviation("standard deviation", relative),
		report.Mean("1 - cosine", func(of rounded) []float64 { return r.gradient(of.arm, gradientError.distance) }),
		report.Mean("bias", bias), report.Deviation("standard deviation", bias),
		report.Mean("loss before it trains", of(r.gapBefore)), report.Mean("loss after", gap),
		report.Deviation("standard deviation", gap), report.StandardError("standard error", gap))
}

// curves are the training losses, in common and then apart.
func (r *results) curves() (all report.Curves) {
	for _, f := range r.seeds {
		all = append(all, report.Curve{Seed: f.seed, Arm: "common", Values: f.common})
		for i, a := range arms() {
			all = append(all, report.Curve{Seed: f.seed, Arm: a.name, First: r.study.common, Values: f.arms[i].losses})
		}
	}
	return all
}

// bars are of each class in each format, in the order of classes.
func bars(c chart.Chart, figure func(arm int) []float64) chart.Chart {
	p := report.Plot{Chart: c}
	for format, f := range formats {
		for i, class := range nn.OperatorClasses() {
			p.Add(chart.Series{Name: f.name, Mark: chart.Bars}, fmt.Sprintf("%v (%s)", class, tierOf(class).name),
				figure(armOf(class, format))...)
			p.Series[format].Points[i].Name = class.String()
		}
	}
	return p.Chart
}
