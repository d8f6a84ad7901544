package sensitivity

import (
	"fmt"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/nn"
)

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

func (r *results) lossTable() report.Table {
	t := report.Table{Name: "losses", Title: "Held-out loss in nats per byte, and steps whose " +
		"gradient was not finite", Columns: []string{"seed", "arm", "before", "after", "skipped steps"}}
	for _, f := range r.seeds {
		for i, a := range arms() {
			t.Add(fmt.Sprint(f.seed), a.name, f.arms[i].before, f.arms[i].after, f.arms[i].skipped)
		}
	}
	return t
}

func (r *results) parameterTable() report.Table {
	t := report.Table{
		Name: "parameters", Title: "Error of the gradient of each parameter", Raw: true,
		Columns: []string{"seed", "arm", "parameter", "error %", "cosine", "bias %"},
	}
	for _, f := range r.seeds {
		for i, a := range arms() {
			for j, e := range f.arms[i].gradients {
				t.Add(fmt.Sprint(f.seed), a.name, r.params[j],
					100*e.relative(), 1-e.distance(), 100*e.bias())
			}
		}
	}
	return t
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

func (r *results) gradientChart() chart.Chart {
	return bars(chart.Chart{
		Title: "Error of gradients with one class of operators rounded, mean of seeds; in brackets " +
			"what practice computes it in",
		Y: "percent of the gradient", LogY: true,
	}, r.relativeOf)
}

func (r *results) lossChart() chart.Chart {
	return bars(chart.Chart{
		Title: "Held-out loss above that of FP32 after training with one class rounded, mean of seeds",
		Y:     "percent", Zero: true,
	}, r.gap)
}

func (r *results) beforeChart() chart.Chart {
	return bars(chart.Chart{
		Title: "The same before it trains: of one model, with one class of its forward pass rounded",
		Y:     "percent", Zero: true,
	}, r.gapBefore)
}
