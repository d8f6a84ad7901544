package sensitivity

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/nn"
)

// classTable has both measures of each arm.
func (r *results) classTable() report.Table {
	t := report.Table{
		Name: "classes", Title: "What is rounded, its gradients and its held-out loss against FP32, " +
			"in percent, median of parameters, mean of the seeds",
		Columns: []string{
			"rounded", "in", "practice", "gradient error", "standard deviation",
			"1 - cosine", "bias", "standard deviation",
			"loss before it trains", "loss after", "standard deviation", "standard error",
		},
	}
	add := func(what, in, practice string, arm int) {
		e, b, g := r.relativeOf(arm), r.gradient(arm, gradientError.bias), r.gap(arm)
		eDeviation, _ := statistics.Spread(e)
		bDeviation, _ := statistics.Spread(b)
		gDeviation, ofMean := statistics.Spread(g)
		t.Add(what, in, practice, statistics.Mean(e), eDeviation,
			statistics.Mean(r.gradient(arm, gradientError.distance)), statistics.Mean(b), bDeviation,
			statistics.Mean(r.gapBefore(arm)), statistics.Mean(g), gDeviation, ofMean)
	}
	for format, f := range formats {
		for _, class := range nn.OperatorClasses() {
			add(class.String(), f.name, tierOf(class).name, armOf(class, format))
		}
	}
	add("all, as in practice", "FP8, BF16, FP32", "", practiceArm)
	add("all", "FP8", "", allFP8Arm)
	add("products", "FP4", "", fp4Arm)
	add("products", "FP8, cut off", "", cutArm)
	return t
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

func (r *results) curveTable() report.Table {
	t := report.Table{Name: "curves", Raw: true, Columns: []string{"seed", "arm", "step", "loss"}}
	for _, f := range r.seeds {
		for step, loss := range f.common {
			t.Add(fmt.Sprint(f.seed), "common", step, loss)
		}
		for i, a := range arms() {
			for step, loss := range f.arms[i].losses {
				t.Add(fmt.Sprint(f.seed), a.name, r.study.common+step, loss)
			}
		}
	}
	return t
}

// bars are of each class in each format, in the order of classes.
func bars(c chart.Chart, figure func(arm int) []float64) chart.Chart {
	for format, f := range formats {
		s := chart.Series{Name: f.name, Mark: chart.Bars}
		for i, class := range nn.OperatorClasses() {
			s.Points = append(s.Points, chart.Point{
				X: float64(i), Y: statistics.Mean(figure(armOf(class, format))), Name: class.String(),
			})
		}
		c.Series = append(c.Series, s)
	}
	for _, class := range nn.OperatorClasses() {
		c.Labels = append(c.Labels, fmt.Sprintf("%v (%s)", class, tierOf(class).name))
	}
	return c
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
