package attention

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
)

func joined(name string) chart.Series { return chart.Series{Name: name, Mark: chart.Joined} }

func rings(name string) chart.Series { return chart.Series{Name: name, Mark: chart.Rings} }

func (s *study) spreadChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Error against the spread of scores", X: "standard deviation of scores", Y: "relative error, percent", LogY: true}}
	for _, l := range lifts() {
		for i, error := range s.errorsOf(l) {
			p.Add(joined("P lifted by "+l.String()), deviations[i], 100*error)
		}
	}
	for _, l := range []lift{highLazy, lowLazy} {
		for i, error := range published2694[l] {
			p.Add(rings(l.String()+", published"), deviations[i], 100*error)
		}
	}
	return p.Chart
}

func (s *study) flushChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Share of P that vanishes behind four sinks", X: "Δ, by which their scores are larger", Y: "percent", Zero: true}}
	for _, factor := range []float64{1, 256} {
		name := fmt.Sprintf("S = %v", factor)
		for _, f := range s.flushOf(factor) {
			p.Add(joined(name+", sinks first"), f.delta, 100*f.forward)
			p.Add(joined(name+", sinks last"), f.delta, 100*f.reverse)
			p.Add(rings(name+", the paper's formula"), f.delta, 100*f.formula())
		}
	}
	return p.Chart
}

func (s *study) growthChart(values string) chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Error of P·V by the length of K, values " + values, X: "keys", Y: "relative error, percent", LogX: true, LogY: true}}
	for i, way := range adders() {
		for _, keys := range s.lengths() {
			p.Add(joined(way.name), keys, 100*s.growthOf(values, keys, i).relative)
		}
	}
	return p.Chart
}

func (s *study) rotationChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Root mean square error with outliers", Y: "root mean square error", Zero: true, Lines: []chart.Reference{
		{Name: "published, tensor scales", Value: publishedTensor}, {Name: "published, FlashAttention-3", Value: publishedFA3}}}}
	for _, r := range s.rotations {
		p.Add(joined(fa3Recipes()[r.recipe].name), fmt.Sprintf("%d x %d", r.keys, r.dim), r.mean())
	}
	return p.Chart
}

func (s *study) smoothingChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Error by the bias of 8 channels of K, tensor scales", Y: "relative error, percent", LogY: true}}
	for _, x := range s.smoothing {
		label := fmt.Sprint(x.bias)
		p.Add(joined("as it is"), label, 100*x.plain)
		p.Add(joined("smooth K"), label, 100*x.smooth)
		p.Add(joined("rotated Q and K"), label, 100*x.rotated)
	}
	return p.Chart
}

func (s *study) scaleChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Error by what shares a scale", Y: "relative error, percent", LogY: true}}
	for _, r := range granularities() {
		for _, kind := range kinds() {
			p.Add(chart.Series{Name: r.name, Mark: chart.Dots}, kind, 100*s.scaledBy(kind, r.name))
		}
	}
	return p.Chart
}

func (c *caching) perplexityChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Perplexity of bytes by how many come before", X: bytesOfWindow, Y: "perplexity"}}
	for way, k := range keepings() {
		for part := range c.whole() {
			p.Add(joined(k.name), c.label(part), math.Exp(c.loss(way, part)))
		}
	}
	return p.Chart
}

func (c *caching) costChart() chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Loss above that with a cache in BF16, and two standard errors", X: bytesOfWindow, Y: "nats per byte", Zero: true}}
	for way := inBF16 + 1; way < tooLarge; way++ {
		for part := range c.whole() {
			mean, twice := c.cost(way, inBF16, part)
			p.AddPoint(joined(keepings()[way].name), c.label(part), chart.Point{Y: mean, Spread: twice})
		}
	}
	return p.Chart
}

const bytesOfWindow = "bytes of a window"

// label names a part of a window.
func (c *caching) label(part int) string {
	first, last := c.between(part)
	return fmt.Sprintf("%d to %d", first, last)
}
