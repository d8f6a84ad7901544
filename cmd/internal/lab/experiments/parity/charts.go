package parity

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

// overSeeds returns the mean of a figure over the seeds at each step.
func (c *comparison) overSeeds(figure func(seed, step int) float64) (points []chart.Point) {
	for step := range c.setup.Steps {
		var values []float64
		for seed := range c.seeds {
			values = append(values, figure(seed, step))
		}
		points = append(points, chart.Point{X: float64(step), Y: statistics.Mean(values)})
	}
	return points
}

// allowed are lines at the gap that is wanted.
func allowed() []chart.Reference {
	return []chart.Reference{{Name: fmt.Sprintf("+%v %%", gradeOfGap), Value: gradeOfGap}, {Name: fmt.Sprintf("-%v %%", gradeOfGap), Value: -gradeOfGap}}
}

func (c *comparison) lossChart() chart.Chart {
	all := chart.Chart{Title: "Training loss, mean of the seeds", X: "step", Y: "nats per byte", Smooth: true}
	for way, a := range c.ways {
		all.Series = append(all.Series, chart.Series{Name: a.Name, Points: c.overSeeds(func(seed, step int) float64 {
			return c.curve(seed, way).Losses[step]
		})})
	}
	return all
}

func (c *comparison) gapChart() chart.Chart {
	all := chart.Chart{Title: "Training loss above that of FP32 on the same batch, mean of the seeds", X: "step", Y: "percent", Zero: true, Smooth: true, Lines: allowed()}
	for way, a := range c.ways[bf16Way:] {
		all.Series = append(all.Series, chart.Series{Name: a.Name, Points: c.overSeeds(func(seed, step int) float64 {
			return 100 * (c.curve(seed, bf16Way+way).Losses[step]/c.curve(seed, fp32Way).Losses[step] - 1)
		})})
	}
	return all
}

// seedChart shows the gaps of the seeds, and behind them their mean and its standard
// error.
func (c *comparison) seedChart() chart.Chart {
	all := chart.Chart{Title: "Held-out loss above that of FP32, by seed; at the end the mean and its standard error", X: "seed", Y: "percent", Zero: true, Lines: allowed()}
	for _, seed := range c.seeds {
		all.Labels = append(all.Labels, fmt.Sprint(seed))
	}
	all.Labels = append(all.Labels, "mean")
	for way, a := range c.ways[bf16Way:] {
		s := chart.Series{Name: a.Name, Mark: chart.Dots}
		percents := c.gap(bf16Way+way, fp32Way, heldOut)
		for i, v := range percents {
			s.Points = append(s.Points, chart.Point{X: float64(i), Y: v})
		}
		_, ofMean := statistics.Spread(percents)
		s.Points = append(s.Points, chart.Point{X: float64(len(percents)), Y: statistics.Mean(percents), Spread: ofMean})
		all.Series = append(all.Series, s)
	}
	return all
}
