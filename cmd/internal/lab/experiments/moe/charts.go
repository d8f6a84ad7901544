package moe

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
)

// ofArms makes a series of each of some trained arms.
func ofArms(series func(arm int) chart.Series, which ...int) (all []chart.Series) {
	for _, i := range which {
		s, a := series(i), arms()[i]
		s.Name, s.Dashed = a.name, a.control && s.Mark == chart.Line
		all = append(all, s)
	}
	return all
}

// gapChart is of the training loss as gaps: the losses themselves lie on each other.
func (r *results) gapChart() chart.Chart {
	c := chart.Chart{
		Title: "Training loss above that of BF16 on the same batch, mean of the seeds",
		X:     "step", Y: "percent", Zero: true, Smooth: true,
	}
	c.Series = ofArms(func(arm int) (s chart.Series) {
		for step := range r.study.steps {
			gaps := r.of(func(f found) float64 {
				return 100 * (f.arms[arm].losses[step]/f.arms[bf16Arm].losses[step] - 1)
			})
			s.Points = append(s.Points, chart.Point{X: float64(step), Y: statistics.Mean(gaps)})
		}
		return s
	}, fp8Arm, deepSeekArm, mxfp8Arm, delayedArm, unbalancedArm, slowerArm)
	return c
}

// seedChart shows the gaps of the seeds, and behind them their mean and its standard error.
func (r *results) seedChart() chart.Chart {
	c := chart.Chart{
		Title: "Training loss of the last two thirds of the steps above that of BF16, by seed; at the end the " +
			"mean and its standard error",
		X: "seed", Y: "percent", Zero: true, Labels: append(r.seedLabels(), "mean"),
	}
	c.Series = ofArms(func(arm int) chart.Series {
		s := chart.Series{Mark: chart.Dots}
		gaps := r.gap(arm)
		for i, v := range gaps {
			s.Points = append(s.Points, chart.Point{X: float64(i), Y: v})
		}
		_, ofMean := statistics.Spread(gaps)
		mean := chart.Point{X: float64(len(gaps)), Y: statistics.Mean(gaps), Spread: ofMean}
		s.Points = append(s.Points, mean)
		return s
	}, fp8Arm, deepSeekArm, mxfp8Arm, delayedArm, unbalancedArm, slowerArm)
	return c
}

func (r *results) seedLabels() (labels []string) {
	for _, f := range r.seeds {
		labels = append(labels, fmt.Sprint(f.seed))
	}
	return labels
}

// variationChart shows how uneven loads are, step by step.
func (r *results) variationChart() chart.Chart {
	c := chart.Chart{
		Title: "Loads of a step: standard deviation over the mean, mean of layers and seeds",
		X:     "step", Y: "coefficient of variation", Zero: true, Smooth: true,
	}
	c.Series = ofArms(func(arm int) (s chart.Series) {
		for step := range r.study.steps {
			values := r.of(func(f found) float64 {
				return r.overMixtures(func(m int) float64 { return variation(f.arms[arm].loads[step][m]) })
			})
			s.Points = append(s.Points, chart.Point{X: float64(step), Y: statistics.Mean(values)})
		}
		return s
	}, bf16Arm, fp8Arm, deepSeekArm, mxfp8Arm, unbalancedArm)
	return c
}

// ofExperts makes a series of each expert of the last layer in the first seed.
func (r *results) ofExperts(points func(mixture, expert int) []chart.Point) (all []chart.Series) {
	for e := range r.study.experts() {
		all = append(all, chart.Series{
			Name: fmt.Sprintf("expert %d", e), Points: points(r.study.mixtures()-1, e),
		})
	}
	return all
}

// loadChart shows the loads of experts over steps.
func (r *results) loadChart() chart.Chart {
	f := r.seeds[0]
	tokens := r.study.batch * r.study.seq
	return chart.Chart{
		Title: fmt.Sprintf("Tokens that come to each expert of the last layer, FP8, seed %d", f.seed),
		X:     "step", Y: "percent of all tokens", Zero: true, Smooth: true,
		Series: r.ofExperts(func(mixture, expert int) (points []chart.Point) {
			for step, loads := range f.arms[fp8Arm].loads {
				y := 100 * float64(loads[mixture][expert]) / float64(tokens)
				points = append(points, chart.Point{X: float64(step), Y: y})
			}
			return points
		}),
	}
}

// amaxChart shows the amax of experts over steps.
func (r *results) amaxChart() chart.Chart {
	f := r.seeds[0]
	return chart.Chart{
		Title: fmt.Sprintf("Largest magnitude of each expert's input of down in the last layer, FP8, "+
			"seed %d", f.seed),
		X: "step", Y: "amax", LogY: true,
		Series: r.ofExperts(func(mixture, expert int) (points []chart.Point) {
			for _, h := range f.arms[fp8Arm].heard {
				if h.place == (place{inputOfDown, mixture, expert}) && h.elements > 0 {
					points = append(points, chart.Point{X: float64(h.step), Y: h.amax})
				}
			}
			return points
		}),
	}
}

// saturatedChart shows by operand what saturates under delayed scales.
func (r *results) saturatedChart() chart.Chart {
	c := chart.Chart{
		Title: "Values that saturate in the experts under delayed scales, mean of layers and seeds",
		X:     "step", Y: "of a million", Zero: true,
	}
	for o, of := range operands() {
		for _, shared := range []bool{false, true} {
			s := chart.Series{Name: of.what, Color: chart.Key(of.what), Dashed: shared}
			if shared {
				s.Name += ", shared expert"
			}
			for step := range r.study.steps {
				if !r.study.listens(step) || step == 0 { // when scales are of nothing yet
					continue
				}
				y := statistics.Mean(r.of(func(f found) float64 { return r.saturatedAt(f, o, step, shared) }))
				s.Points = append(s.Points, chart.Point{X: float64(step), Y: y})
			}
			c.Series = append(c.Series, s)
		}
	}
	return c
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

// flushedChart shows what scales that experts share flush.
func (r *results) flushedChart() chart.Chart {
	c := chart.Chart{
		Title: "Values that become 0 in E4M3, by what shares a scale, after FP8's training; mean of seeds",
		Y:     "of a thousand", Zero: true,
	}
	for _, of := range operands() {
		c.Labels = append(c.Labels, of.what)
	}
	for way, name := range shareWays {
		s := chart.Series{Name: name, Mark: chart.Bars}
		for o := range operands() {
			y := statistics.Mean(r.flushed(o, ofAll(way)))
			s.Points = append(s.Points, chart.Point{X: float64(o), Y: y})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// changedChart shows by layer which choices change.
func (r *results) changedChart() chart.Chart {
	c := chart.Chart{
		Title: "Choices that are not FP32's at the same weights, by layer, mean of the seeds",
		X:     "layer", Y: "percent", LogY: true,
	}
	dense := r.study.config().Dense
	for m := range r.study.mixtures() {
		c.Labels = append(c.Labels, fmt.Sprint(dense+m))
	}
	for i, a := range compared() {
		if i == blocksThere { // whose forward pass is FP8's
			continue
		}
		s := chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.control}
		for m := range r.study.mixtures() {
			y := statistics.Mean(r.changed(i, m))
			s.Points = append(s.Points, chart.Point{X: float64(m), Y: y})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// gradientChart shows the error of gradients by part.
func (r *results) gradientChart() chart.Chart {
	c := chart.Chart{
		Title: "Error of the gradients of a part's weights against FP32, median of weights, mean of seeds",
		Y:     "percent of the gradient", LogY: true, Labels: parts,
	}
	for i, a := range compared() {
		if i == routerBF16There || i == routerE4M3There {
			continue
		}
		s := chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.control}
		for p, part := range parts {
			y := statistics.Mean(r.gradient(i, part))
			s.Points = append(s.Points, chart.Point{X: float64(p), Y: y})
		}
		c.Series = append(c.Series, s)
	}
	return c
}
