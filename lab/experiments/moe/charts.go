package moe

import (
	"fmt"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
)

// charted are the arms whose gaps are drawn.
var charted = []int{fp8Arm, deepSeekArm, mxfp8Arm, delayedArm, unbalancedArm, slowerArm}

// gapChart is of the training loss as gaps: the losses themselves lie on each other.
func (r *results) gapChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Training loss above that of BF16 on the same batch, mean of the seeds",
		X:     "step", Y: "percent", Zero: true, Smooth: true,
	}}
	for _, i := range charted {
		a := arms()[i]
		p.AddCurves(r.curves().Above(a.name, arms()[bf16Arm].name), chart.Series{Name: a.name, Dashed: a.control})
	}
	return p.Chart
}

// seedChart shows the gaps of the seeds, and behind them their mean and its standard error.
func (r *results) seedChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Training loss of the last two thirds of the steps above that of BF16, by seed; at the end the " +
			"mean and its standard error",
		X: "seed", Y: "percent", Zero: true,
	}}
	for _, i := range charted {
		s, gaps := chart.Series{Name: arms()[i].name, Mark: chart.Dots}, r.gap(i)
		for j, f := range r.seeds {
			p.Add(s, f.seed, gaps[j])
		}
		p.AddMean(s, "mean", gaps...)
	}
	return p.Chart
}

// variationChart shows how uneven loads are, step by step.
func (r *results) variationChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Loads of a step: standard deviation over the mean, mean of layers and seeds",
		X:     "step", Y: "coefficient of variation", Zero: true, Smooth: true,
	}}
	for _, i := range []int{bf16Arm, fp8Arm, deepSeekArm, mxfp8Arm, unbalancedArm} {
		for step := range r.study.steps {
			p.Add(chart.Series{Name: arms()[i].name}, step, r.of(func(f found) float64 {
				return r.overMixtures(func(m int) float64 { return variation(f.arms[i].loads[step][m]) })
			})...)
		}
	}
	return p.Chart
}

// loadChart shows the loads of the experts of the last layer over steps.
func (r *results) loadChart() chart.Chart {
	f, tokens := r.seeds[0], r.study.batch*r.study.seq
	p := report.Plot{Chart: chart.Chart{
		Title: fmt.Sprintf("Tokens that come to each expert of the last layer, FP8, seed %d", f.seed),
		X:     "step", Y: "percent of all tokens", Zero: true, Smooth: true,
	}}
	for step, loads := range f.arms[fp8Arm].loads {
		for e, n := range loads[r.study.mixtures()-1] {
			p.Add(chart.Series{Name: fmt.Sprintf("expert %d", e)}, step, 100*float64(n)/float64(tokens))
		}
	}
	return p.Chart
}

// amaxChart shows the amax of the experts of the last layer over steps.
func (r *results) amaxChart() chart.Chart {
	f := r.seeds[0]
	p := report.Plot{Chart: chart.Chart{
		Title: fmt.Sprintf("Largest magnitude of each expert's input of down in the last layer, FP8, "+
			"seed %d", f.seed),
		X: "step", Y: "amax", LogY: true,
	}}
	for e := range r.study.experts() {
		s := p.Begin(chart.Series{Name: fmt.Sprintf("expert %d", e)})
		for _, h := range f.arms[fp8Arm].heard {
			if h.place == (place{inputOfDown, r.study.mixtures() - 1, e}) && h.elements > 0 {
				p.Add(s, h.step, h.amax)
			}
		}
	}
	return p.Chart
}

// saturatedChart shows by operand what saturates under delayed scales.
func (r *results) saturatedChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Values that saturate in the experts under delayed scales, mean of layers and seeds",
		X:     "step", Y: "of a million", Zero: true,
	}}
	for o, of := range operands() {
		for _, shared := range []bool{false, true} {
			s := chart.Series{Name: of.what, Color: chart.Key(of.what), Dashed: shared}
			if shared {
				s.Name += ", shared expert"
			}
			for step := 1; step < r.study.steps; step++ { // at first scales are of nothing yet
				if r.study.listens(step) {
					p.Add(s, step, r.of(func(f found) float64 { return r.saturatedAt(f, o, step, shared) })...)
				}
			}
		}
	}
	return p.Chart
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
	p := report.Plot{Chart: chart.Chart{
		Title: "Values that become 0 in E4M3, by what shares a scale, after FP8's training; mean of seeds",
		Y:     "of a thousand", Zero: true,
	}}
	for _, s := range sharings() {
		p.Add(chart.Series{Name: shareWays[s.way], Mark: chart.Bars}, operands()[s.operand].what,
			r.flushed(s.operand, ofAll(s.way))...)
	}
	return p.Chart
}

// changedChart shows by layer which choices change.
func (r *results) changedChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Choices that are not FP32's at the same weights, by layer, mean of the seeds",
		X:     "layer", Y: "percent", LogY: true,
	}}
	for i, a := range compared() {
		if i == blocksThere { // whose forward pass is FP8's
			continue
		}
		for m := range r.study.mixtures() {
			p.Add(chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.control},
				fmt.Sprint(r.study.config().Dense+m), r.changed(i, m)...)
		}
	}
	return p.Chart
}

// gradientChart shows the error of gradients by part.
func (r *results) gradientChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{
		Title: "Error of the gradients of a part's weights against FP32, median of weights, mean of seeds",
		Y:     "percent of the gradient", LogY: true,
	}}
	for i, a := range compared() {
		if i == routerBF16There || i == routerE4M3There {
			continue
		}
		for _, part := range parts {
			p.Add(chart.Series{Name: a.name, Mark: chart.Joined, Dashed: a.control}, part, r.gradient(i, part)...)
		}
	}
	return p.Chart
}
