package parity

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// lossChart is of the steps that arms have apart, as gaps: the losses themselves lie on
// each other.
func (r *results) lossChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Training loss above that of FP32 on the same batch, mean of the seeds",
		X:     "step of each arm", Y: "percent", Zero: true, Smooth: true,
	}}
	for _, i := range trainedArms() {
		a := arms()[i]
		p.AddCurves(r.curves().Above(a.name, arms()[fp32Arm].name), chart.Series{Name: a.name, Dashed: a.control})
	}
	return p.Chart
}

// curveChart is of all steps.
func (r *results) curveChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Training loss, mean of the seeds: in common, and then apart",
		X:     "step", Y: "nats per byte", Smooth: true,
	}}
	for _, a := range arms() {
		p.AddCurves(r.curves(), chart.Series{Name: a.name, Dashed: a.control})
	}
	p.AddCurves(r.curves(), chart.Series{Name: "common"})
	p.Series[len(arms())].Name = "in common, FP32"
	return p.Chart
}

// seedChart shows the gaps of the seeds, and behind them their mean and its standard error.
func (r *results) seedChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Held-out loss above that of FP32, by seed; at the end the mean and its standard error",
		X:     "seed", Y: "percent", Zero: true,
	}}
	for _, arm := range trainedArms() {
		p.AddMean(r.bySeed(&p, arm, r.gap(arm)), "mean", r.gap(arm)...)
	}
	return p.Chart
}

// bySeed adds a series of the values of an arm.
func (r *results) bySeed(p *report.Plot, arm int, values []float64) chart.Series {
	s := chart.Series{Name: arms()[arm].name, Mark: chart.Dots}
	for i, f := range r.seeds {
		p.Add(s, f.seed, values[i])
	}
	return s
}

// layerChart shows the error of the gradient of each weight.
func (r *results) layerChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Error of the gradient of each weight, of a batch, against float64: mean of the seeds",
		Y:     "percent of the gradient", LogY: true,
	}}
	for _, arm := range trainedArms() {
		for _, w := range r.weights {
			layer, name, _ := layerOf(w)
			_, name, _ = strings.Cut(name, ".")
			p.Add(joined(arm), fmt.Sprintf("%d %s", layer, strings.TrimSuffix(name, "_proj")),
				r.of(func(f found) float64 { return 100 * f.fixed[arm-1][w].relative })...)
		}
	}
	return p.Chart
}

func joined(arm int) chart.Series {
	return chart.Series{Name: arms()[arm].name, Mark: chart.Joined, Dashed: arms()[arm].control}
}

// batchesChart shows how the error of the mean gradient falls with the number of batches.
func (r *results) batchesChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Error of the mean gradient over so many batches: mean of weights and seeds",
		X:     "batches", Y: "percent of one gradient", LogX: true, LogY: true,
	}}
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
	return p.Chart
}

// biasChart shows the bias of arms and of ways to add, by seed.
func (r *results) biasChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Projection of the gradient on the true one, less 1: mean of weights and batches, by seed",
		X:     "seed", Y: "percent", Zero: true,
	}}
	for _, arm := range trainedArms() {
		r.bySeed(&p, arm, r.gradient(arm, projection))
	}
	return p.Chart
}
