package parity

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

// eachArm makes a series of each arm from the first on.
func eachArm(first int, series func(arm int) chart.Series) (all []chart.Series) {
	for i, a := range arms()[first:] {
		s := series(first + i)
		s.Name, s.Dashed = a.name, a.control && s.Mark != chart.Dots
		all = append(all, s)
	}
	return all
}

// lossChart is of the steps that arms have apart, as gaps: the losses themselves lie on
// each other.
func (r *results) lossChart() chart.Chart {
	c := chart.Chart{
		Title: "Training loss above that of FP32 on the same batch, mean of the seeds",
		X:     "step of each arm", Y: "percent", Zero: true, Smooth: true,
	}
	c.Series = eachArm(fp32Arm+1, func(arm int) (s chart.Series) {
		for step := range r.study.apart {
			gaps := r.of(func(f found) float64 {
				return 100 * (f.arms[arm].losses[step]/f.arms[fp32Arm].losses[step] - 1)
			})
			s.Points = append(s.Points, chart.Point{X: float64(step), Y: statistics.Mean(gaps)})
		}
		return s
	})
	return c
}

// curveChart is of all steps.
func (r *results) curveChart() chart.Chart {
	c := chart.Chart{
		Title: "Training loss, mean of the seeds: in common, and then apart",
		X:     "step", Y: "nats per byte", Smooth: true,
	}
	common := chart.Series{Name: "in common, FP32"}
	for step := range r.study.common {
		losses := r.of(func(f found) float64 { return f.root[step] })
		common.Points = append(common.Points, chart.Point{X: float64(step), Y: statistics.Mean(losses)})
	}
	c.Series = append(eachArm(fp32Arm, func(arm int) (s chart.Series) {
		for step := range r.study.apart {
			losses := r.of(func(f found) float64 { return f.arms[arm].losses[step] })
			at := chart.Point{X: float64(r.study.common + step), Y: statistics.Mean(losses)}
			s.Points = append(s.Points, at)
		}
		return s
	}), common)
	return c
}

// seedChart shows the gaps of the seeds, and behind them their mean and its standard error.
func (r *results) seedChart() chart.Chart {
	c := chart.Chart{
		Title: "Held-out loss above that of FP32, by seed; at the end the mean and its standard error",
		X:     "seed", Y: "percent", Zero: true,
	}
	for _, f := range r.seeds {
		c.Labels = append(c.Labels, fmt.Sprint(f.seed))
	}
	c.Labels = append(c.Labels, "mean")
	c.Series = eachArm(fp32Arm+1, func(arm int) chart.Series {
		s := chart.Series{Mark: chart.Dots}
		gaps := r.gap(arm)
		for i, v := range gaps {
			s.Points = append(s.Points, chart.Point{X: float64(i), Y: v})
		}
		m, _, ofMean := spreadOf(gaps)
		s.Points = append(s.Points, chart.Point{X: float64(len(gaps)), Y: m, Spread: ofMean})
		return s
	})
	return c
}

// layerChart shows the error of the gradient of each weight.
func (r *results) layerChart() chart.Chart {
	c := chart.Chart{
		Title: "Error of the gradient of each weight, of a batch, against float64: mean of the seeds",
		Y:     "percent of the gradient", LogY: true,
	}
	for _, w := range r.weights {
		layer, name, _ := layerOf(w)
		_, name, _ = strings.Cut(name, ".")
		c.Labels = append(c.Labels, fmt.Sprintf("%d %s", layer, strings.TrimSuffix(name, "_proj")))
	}
	c.Series = eachArm(fp32Arm+1, func(arm int) chart.Series {
		s := chart.Series{Mark: chart.Joined}
		for i, w := range r.weights {
			errors := r.of(func(f found) float64 { return 100 * f.fixed[arm-1][w].relative })
			s.Points = append(s.Points, chart.Point{X: float64(i), Y: statistics.Mean(errors)})
		}
		return s
	})
	return c
}

// batchesChart shows how the error of the mean gradient falls with the number of batches.
func (r *results) batchesChart() chart.Chart {
	c := chart.Chart{
		Title: "Error of the mean gradient over so many batches: mean of weights and seeds",
		X:     "batches", Y: "percent of one gradient", LogX: true, LogY: true,
	}
	c.Series = eachArm(fp32Arm+1, func(arm int) chart.Series {
		s := chart.Series{Mark: chart.Joined}
		for n := 1; n <= r.study.batches; n++ {
			off := statistics.Mean(r.gradient(arm, meanOver(n)))
			s.Points = append(s.Points, chart.Point{X: float64(n), Y: off})
		}
		return s
	})
	free := chart.Series{
		Name:  "FP8, if errors of batches were independent",
		Color: chart.Key(arms()[fp8Arm].name), Dashed: true,
	}
	one := statistics.Mean(r.gradient(fp8Arm, meanOver(1)))
	for n := 1; n <= r.study.batches; n++ {
		free.Points = append(free.Points, chart.Point{X: float64(n), Y: one / math.Sqrt(float64(n))})
	}
	c.Series = append(c.Series, free)
	return c
}

// biasChart shows the bias of arms and of ways to add, by seed.
func (r *results) biasChart() chart.Chart {
	c := chart.Chart{
		Title: "Projection of the gradient on the true one, less 1: mean of weights and batches, by seed",
		X:     "seed", Y: "percent", Zero: true,
	}
	for _, f := range r.seeds {
		c.Labels = append(c.Labels, fmt.Sprint(f.seed))
	}
	c.Series = eachArm(fp32Arm+1, func(arm int) chart.Series {
		s := chart.Series{Mark: chart.Dots}
		for i, v := range r.gradient(arm, projection) {
			s.Points = append(s.Points, chart.Point{X: float64(i), Y: v})
		}
		return s
	})
	return c
}
