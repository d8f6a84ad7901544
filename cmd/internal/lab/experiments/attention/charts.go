package attention

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
)

func (s *study) spreadChart() chart.Chart {
	c := chart.Chart{Title: "Error against the spread of scores", X: "standard deviation of scores", Y: "relative error, percent", LogY: true}
	for _, l := range lifts() {
		c.Series = append(c.Series, line("P lifted by "+l.String(), deviations, s.errorsOf(l)))
	}
	for _, l := range []lift{highLazy, lowLazy} {
		c.Series = append(c.Series, chart.Series{Name: l.String() + ", published", Mark: chart.Rings, Points: points(deviations, published2694[l])})
	}
	return c
}

// line shows shares as percent.
func line(name string, x, shares []float64) chart.Series {
	return chart.Series{Name: name, Mark: chart.Joined, Points: points(x, shares)}
}

func points(x, shares []float64) (p []chart.Point) {
	for i, y := range shares {
		p = append(p, chart.Point{X: x[i], Y: 100 * y})
	}
	return p
}

func (s *study) flushChart() chart.Chart {
	c := chart.Chart{Title: "Share of P that vanishes behind four sinks", X: "Δ, by which their scores are larger", Y: "percent", Zero: true}
	for _, factor := range []float64{1, 256} {
		var forward, reverse, formula []float64
		for _, f := range s.flushOf(factor) {
			forward, reverse, formula = append(forward, f.forward), append(reverse, f.reverse), append(formula, f.formula())
		}
		name := fmt.Sprintf("S = %v", factor)
		c.Series = append(c.Series, line(name+", sinks first", flushDeltas, forward), line(name+", sinks last", flushDeltas, reverse),
			chart.Series{Name: name + ", the paper's formula", Mark: chart.Rings, Points: points(flushDeltas, formula)})
	}
	return c
}

func (s *study) growthChart(values string) chart.Chart {
	c := chart.Chart{Title: "Error of P·V by the length of K, values " + values, X: "keys", Y: "relative error, percent", LogX: true, LogY: true}
	for i, way := range adders() {
		of := chart.Series{Name: way.name, Mark: chart.Joined}
		for _, keys := range s.lengths() {
			of.Points = append(of.Points, chart.Point{X: float64(keys), Y: 100 * s.growthOf(values, keys, i).relative})
		}
		c.Series = append(c.Series, of)
	}
	return c
}

func (s *study) rotationChart() chart.Chart {
	c := chart.Chart{Title: "Root mean square error with outliers", Y: "root mean square error", Zero: true, Lines: []chart.Reference{
		{Name: "published, tensor scales", Value: publishedTensor}, {Name: "published, FlashAttention-3", Value: publishedFA3}}}
	recipes := fa3Recipes()
	c.Series = make([]chart.Series, len(recipes))
	for i, r := range s.rotations {
		if r.recipe == 0 {
			c.Labels = append(c.Labels, fmt.Sprintf("%d x %d", r.keys, r.dim))
		}
		of := &c.Series[r.recipe]
		of.Name, of.Mark = recipes[r.recipe].name, chart.Joined
		of.Points = append(of.Points, chart.Point{X: float64(i / len(recipes)), Y: r.mean()})
	}
	return c
}

func (s *study) smoothingChart() chart.Chart {
	c := chart.Chart{Title: "Error by the bias of 8 channels of K, tensor scales", Y: "relative error, percent", LogY: true}
	var x, plain, smooth, rotated []float64
	for i, of := range s.smoothing {
		c.Labels = append(c.Labels, fmt.Sprint(of.bias))
		x, plain, smooth, rotated = append(x, float64(i)), append(plain, of.plain), append(smooth, of.smooth), append(rotated, of.rotated)
	}
	c.Series = []chart.Series{line("as it is", x, plain), line("smooth K", x, smooth), line("rotated Q and K", x, rotated)}
	return c
}

func (s *study) scaleChart() chart.Chart {
	c := chart.Chart{Title: "Error by what shares a scale", Y: "relative error, percent", LogY: true, Labels: slices.Clone(kinds())}
	for _, r := range granularities() {
		of := chart.Series{Name: r.name, Mark: chart.Dots}
		for i, kind := range kinds() {
			of.Points = append(of.Points, chart.Point{X: float64(i), Y: 100 * s.scaledBy(kind, r.name)})
		}
		c.Series = append(c.Series, of)
	}
	return c
}

func (c *caching) perplexityChart() chart.Chart {
	all := chart.Chart{Title: "Perplexity of bytes by how many come before", Y: "perplexity"}
	c.byRange(&all, keepings(), func(way, part int) (y, spread float64) { return math.Exp(c.loss(way, part)), 0 })
	return all
}

func (c *caching) costChart() chart.Chart {
	all := chart.Chart{Title: "Loss above that with a cache in BF16, and two standard errors", Y: "nats per byte", Zero: true}
	c.byRange(&all, keepings()[:tooLarge], func(way, part int) (mean, twice float64) { return c.cost(way, inBF16, part) })
	all.Series = all.Series[1:]
	return all
}

// byRange adds a series for each way.
func (c *caching) byRange(to *chart.Chart, ways []keeping, y func(way, part int) (y, spread float64)) {
	to.X = "bytes of a window"
	for part := range c.whole() {
		first, last := c.between(part)
		to.Labels = append(to.Labels, fmt.Sprintf("%d to %d", first, last))
	}
	for way, k := range ways {
		of := chart.Series{Name: k.name, Mark: chart.Joined}
		for part := range c.whole() {
			at := chart.Point{X: float64(part)}
			at.Y, at.Spread = y(way, part)
			of.Points = append(of.Points, at)
		}
		to.Series = append(to.Series, of)
	}
}
