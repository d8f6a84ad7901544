package attention

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

func (s *study) report() *report.Report {
	return &report.Report{
		Goals: s.goals(),
		Findings: []report.Finding{
			s.spreadFinding(), s.flushFinding(), s.growthFinding(), s.rotationFinding(), s.smoothingFinding(), s.scaleFinding(), s.caching.finding(),
		},
		Limits: []string{
			"All operands but those of the last part are random numbers of our own: nothing is said of a model there. The needle test of vLLM, which is beside our figures, asks a language model; what is compared is that P·V alone goes the same way.",
			"Kernels are computed as package oracle/flash describes them, with exact scores and correctly rounded exponentials. Promotion every n keys is done by tiles of n keys, which also have maxima of their own.",
			"Hopper's accumulator is a model. It gives every bit of the vectors that were published for single instructions from zero; that a chain goes on from the old sum follows descriptions.",
			fmt.Sprintf("What a cache costs is asked of models of two layers and %d bytes of context. Large models have channels of K with outliers and contexts of 100000 tokens and more, of which this says nothing.", s.caching.config.Context),
			"How pull request 2694 made K, V and the softmax's scale, and how long K is in FlashAttention-3's Table 3, was not in what was read.",
		},
		Charts: s.charts(),
		Tables: s.tables(),
	}
}

// off is how far a figure is from a published one, of that.
func off(got, published float64) float64 { return math.Abs(got/published - 1) }

// farthest is the largest of how far figures are from published ones, in percent of those.
func farthest(got, published []float64) float64 {
	return 100 * slices.Max(statistics.Each(report.Places(len(got)), func(i int) float64 { return off(got[i], published[i]) }))
}

const alike = 2 // spreads at which a lagging maximum hardly matters

func (s *study) goals() []report.Goal {
	published, last := published2694[highLazy], len(deviations)-1
	lengths := s.lengths()
	short, long := lengths[0], lengths[len(lengths)-1]
	judge := func(name string, figure func(d *study) float64) report.Goal {
		return declared().Judge(name, s.by(figure))
	}
	return slices.Concat([]report.Goal{
		judge("lift-4", func(d *study) float64 { return farthest(d.errorsOf(lowLazy), published2694[lowLazy]) }),
		judge("lift-8-alike", func(d *study) float64 { return farthest(d.errorsOf(highLazy)[:alike], published[:alike]) }),
		judge("lift-8-spread", func(d *study) float64 { return farthest(d.errorsOf(highLazy)[alike:], published[alike:]) }),
		judge("lag", (*study).lag),
		judge("lift-8-late", func(d *study) float64 { return d.errorsOf(highLazy)[last] / d.errorsOf(lowLazy)[last] }),

		judge("vanishing-expected", (*study).offExpected),
		judge("vanishing-formula", func(d *study) float64 {
			return statistics.Most(d.flushes, func(f flush) float64 { return math.Abs(f.forward - f.formula()) })
		}),
		judge("half-plain", func(d *study) float64 { return half(d.flushOf(1)) }),
		judge("half-lifted", func(d *study) float64 { return half(d.flushOf(256)) }),
		judge("sinks-last", func(d *study) float64 {
			return statistics.Most(d.flushOf(1), func(f flush) float64 { return f.ratio })
		}),
		judge("sinks-last-lifted", (*study).vanishingLast),

		judge("length", func(d *study) float64 {
			return d.growthOf(oneSign, long, carried).relative / d.growthOf(oneSign, short, carried).relative
		}),
		judge("length-promoted", func(d *study) float64 {
			return statistics.Most([]string{centred, oneSign}, func(values string) float64 {
				return d.growthOf(values, long, promoted).relative / d.growthOf(values, long, exactAdder).relative
			})
		}),
		judge("length-bias", func(d *study) float64 { return 100 * d.growthOf(oneSign, long, carried).bias }),

		judge("outliers-ratio", func(d *study) float64 { return d.compared(tensorScales) / d.compared(blockRotated) }),
		judge("smooth-biased", func(d *study) float64 { return d.smoothedAt(64).smooth / d.smoothedAt(64).plain }),
		judge("smooth-unbiased", func(d *study) float64 { return 100 * off(d.smoothedAt(0).smooth, d.smoothedAt(0).plain) }),
		judge("token-scales", func(d *study) float64 {
			return min(d.tokenOverTensor(plainKind), d.tokenOverTensor(outlierKind), d.tokenOverTensor(tokenKind))
		}),
		judge("huge-key", func(d *study) float64 { return d.tokenOverTensor(keyKind) }),
		judge("huge-value", func(d *study) float64 {
			return 100 * min(d.scaledBy(valueKind, "token"), d.scaledBy(valueKind, "tensor"))
		}),
	}, s.caching.goals())
}

// tokenOverTensor is the error of a kind with a scale for each token over that with one.
func (s *study) tokenOverTensor(kind string) float64 {
	return s.scaledBy(kind, "token") / s.scaledBy(kind, "tensor")
}

// lag is the largest error with a lag of 2^0.75 over that of none.
func (s *study) lag() float64 {
	return slices.Max(statistics.Ratios(s.errorsOf(highBarely), s.errorsOf(highStrict)))
}

func (s *study) spreadFinding() report.Finding {
	high, low := s.errorsOf(highLazy), s.errorsOf(lowLazy)
	n := len(high) - 1
	return report.NewFinding(fmt.Sprintf("Where the maximum may lag by 2^4, a lift of 2^8 has an error of %s at a spread of %v and of %s at %v, a lift of 2^4 of %s and %s.",
		report.Percent(high[0]), deviations[0], report.Percent(high[n]), deviations[n], report.Percent(low[0]), report.Percent(low[n])),
		report.If(high[n] > 3*low[n] && high[0] < 1.5*low[0], "P that saturates is the whole difference: where scores are alike there is none.", "That is not the difference that was published."),
		report.If(s.errorsOf(highStrict)[n] < low[n], "A maximum that does not lag and a lift of 2^8 are better than both.", "A maximum that does not lag is no better than a lift of 2^4."))
}

// offExpected is how far the share that vanishes is from what the distribution of the first
// maximum has it, in percent of that, at most.
func (s *study) offExpected() float64 {
	return statistics.Most(s.flushes, func(f flush) float64 {
		if f.expected < 0.02 {
			return 0
		}
		return 100 * off(f.forward, f.expected)
	})
}

// vanishingLast is the largest share that vanishes where P is lifted and sinks are last, in
// percent.
func (s *study) vanishingLast() float64 {
	return statistics.Most(s.flushOf(256), func(f flush) float64 {
		if f.delta > 8 {
			return 0
		}
		return 100 * f.reverse
	})
}

// halfPublished is the Δ at which the paper's formula is one half.
func halfPublished(factor float64) float64 { return smallestP + math.Log(factor) - sinkDelta }

func (s *study) flushFinding() report.Finding {
	at := slices.Index(flushDeltas, 8)
	plain, lifted := s.flushOf(1)[at], s.flushOf(256)[at]
	return report.NewFinding(fmt.Sprintf("Four sinks that are 8 above the other scores and come first let %s of P vanish, and %s where they come last; multiplied by 256, %s and %s.",
		report.Percent(plain.forward), report.Percent(plain.reverse), report.Percent(lifted.forward), report.Percent(lifted.reverse)),
		report.If(plain.forward > 100*lifted.forward, "The lift is what P needs.", "The lift does not help much."),
		report.If(plain.reverse < plain.forward/2, "Another order helps, too: keys that come before the sinks are rounded relative to a maximum of their own.", "The order makes no great difference."))
}

func (s *study) growthFinding() report.Finding {
	lengths := s.lengths()
	short, long := lengths[0], lengths[len(lengths)-1]
	at := func(keys, adder int) float64 { return s.growthOf(oneSign, keys, adder).relative }
	return report.NewFinding(fmt.Sprintf("In Hopper's accumulator alone, values of one sign have an error of %s over %d keys and of %s over %d; with FP32 every 128 keys %s, every 512 %s, every 8192 %s; added exactly %s. Normal values have %s over %d keys, and %s with promotion.",
		report.Percent(at(short, carried)), short, report.Percent(at(long, carried)), long, report.Percent(at(long, promoted)), report.Percent(at(long, promotedBy4)), report.Percent(at(long, promotedBy64)), report.Percent(at(long, exactAdder)),
		report.Percent(s.growthOf(centred, long, carried).relative), long, report.Percent(s.growthOf(centred, long, promoted).relative)),
		report.If(at(long, carried) > 2*at(short, carried), "What is lost grows with the length of K.", "It does not grow much with the length of K."),
		report.If(at(long, promoted) < at(long, carried)/2, "Promotion mends it.", "Promotion does not mend it.")).AtLength()
}

func (s *study) rotationFinding() report.Finding {
	plain, blocks, rotated, both := s.compared(tensorScales), s.compared(blockScales), s.compared(tensorRotated), s.compared(blockRotated)
	return report.NewFinding(fmt.Sprintf("With outliers the error of tensor scales is %.2f times that of scales of 128 tokens, %.2f times that after a rotation, and %.2f times that of both.", plain/blocks, plain/rotated, plain/both),
		report.If(plain/rotated > plain/blocks, "Rotation is the larger part.", "Rotation is not the larger part."),
		report.If(math.Abs(rotated/both-1) < 0.1, "With it, blocks make no difference to speak of.", "With it, blocks make a difference.")).AtLength()
}

func (s *study) smoothingFinding() report.Finding {
	x := s.smoothedAt(64)
	return report.NewFinding(fmt.Sprintf("With %d of 128 channels of K 64 standard deviations from zero, tensor scales have an error of %s, on smooth K %s, and after a rotation %s.",
		biased, report.Percent(x.plain), report.Percent(x.smooth), report.Percent(x.rotated)),
		report.If(x.smooth < x.rotated/1.1, "Smoothing takes the bias away, which rotation only spreads.", "Smoothing is not better than rotation."))
}

func (s *study) scaleFinding() report.Finding {
	normal := s.tokenOverTensor(plainKind)
	return report.NewFinding(fmt.Sprintf("On normal operands scales per token have %.2f times the error of one per tensor; where a key that no query sees is 2^16 times larger %s against %s, and where a value is %s against %s.",
		normal, report.Percent(s.scaledBy(keyKind, "token")), report.Percent(s.scaledBy(keyKind, "tensor")), report.Percent(s.scaledBy(valueKind, "token")), report.Percent(s.scaledBy(valueKind, "tensor"))),
		report.If(off(normal, 1) < 0.2, "A finer scale buys little as long as values are within E4M3's range.", "A finer scale matters to normal operands."),
		report.If(s.scaledBy(valueKind, "token") > 0.5, "Scales of V by token do not save a head from one huge value: they go into P, relative to the largest.", "Scales of V by token bear one huge value."))
}

// goals are judged by windows, of which a look has fewer.
func (c *caching) goals() []report.Goal {
	goals := []report.Goal{declared().Judge("context", c.gains())}
	for i, name := range []string{"cache-token", "cache-head", "cache-layer", "cache-unscaled"} {
		goals = append(goals, declared().JudgeInterval(name, c.most(byToken+i, declared().Compared(name)), len(c.models[0].losses[inBF16])))
	}
	return append(goals,
		declared().Judge("cache-length", c.growths(byToken)),
		declared().Judge("cache-layer-token", c.costs(byLayer, byToken, c.whole())),
		declared().Judge("scales-too-large", c.costs(tooLarge, inBF16, c.whole())),
		declared().Judge("scales-too-small", c.costs(tooSmall, inBF16, c.whole())))
}

func (c *caching) finding() report.Finding {
	last := c.whole() - 1
	text := fmt.Sprintf("Models of %d bytes of context have a perplexity of %.3f in the first eighth of it and of %.3f in the last half with a cache in BF16. There a cache in E4M3 raises perplexity by",
		c.config.Context, math.Exp(c.loss(inBF16, 0)), math.Exp(c.loss(inBF16, last)))
	seen := false
	for way := byToken; way <= unscaled; way++ {
		mean, _ := c.cost(way, inBF16, last)
		text += fmt.Sprintf(" %s (%s),", report.Percent(math.Expm1(mean)), strings.TrimPrefix(keepings()[way].name, "E4M3, "))
		all := statistics.OfMean(c.costs(way, inBF16, c.whole()), unscaled)
		seen = seen || all.Low > 0
	}
	large, _ := c.cost(tooLarge, inBF16, last)
	small, _ := c.cost(tooSmall, inBF16, last)
	growth, twice := summed(c.growths(byToken))
	between, error := c.cost(byLayer, byToken, c.whole())
	return report.NewFinding(fmt.Sprintf("%s and scales that are 2^17 too large or 2^4 too small by %s and %s.", text, report.Percent(math.Expm1(large)), report.Percent(math.Expm1(small))),
		report.If(seen, "Over all bytes such a cache has a cost that is seen.", "Over all bytes no such cache has a cost that is seen."),
		report.If(growth <= twice, "That it would cost more with length is not seen.", "It costs more with length."),
		report.If(math.Abs(between) <= error, "Scales for each token and head are not seen to be better than one for each layer.", "One scale for each layer and those for each token and head are not the same.")).AtLength()
}

func (s *study) charts() []chart.Chart {
	return []chart.Chart{
		report.Draw(chart.Chart{
			Title: "Error against the spread of scores", X: "standard deviation of scores", Y: "relative error, percent", LogY: true,
		}, func(p *report.Plot) {
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
		}),
		report.Draw(chart.Chart{
			Title: "Share of P that vanishes behind four sinks", X: "Δ, by which their scores are larger", Y: "percent", Zero: true,
		}, func(p *report.Plot) {
			for _, factor := range []float64{1, 256} {
				name := fmt.Sprintf("S = %v", factor)
				for _, f := range s.flushOf(factor) {
					p.Add(joined(name+", sinks first"), f.delta, 100*f.forward)
					p.Add(joined(name+", sinks last"), f.delta, 100*f.reverse)
					p.Add(rings(name+", the paper's formula"), f.delta, 100*f.formula())
				}
			}
		}),
		s.growthChart(centred),
		s.growthChart(oneSign),
		report.Draw(chart.Chart{Title: "Root mean square error with outliers", Y: "root mean square error", Zero: true, Lines: []chart.Reference{
			{Name: "published, tensor scales", Value: publishedTensor}, {Name: "published, FlashAttention-3", Value: publishedFA3}}}, func(p *report.Plot) {
			for _, r := range s.rotations {
				p.Add(joined(fa3Recipes()[r.recipe].name), fmt.Sprintf("%d x %d", r.keys, r.dim), r.mean())
			}
		}),
		report.Draw(chart.Chart{Title: "Error by the bias of 8 channels of K, tensor scales", Y: "relative error, percent", LogY: true}, func(p *report.Plot) {
			for _, x := range s.smoothing {
				label := fmt.Sprint(x.bias)
				p.Add(joined("as it is"), label, 100*x.plain)
				p.Add(joined("smooth K"), label, 100*x.smooth)
				p.Add(joined("rotated Q and K"), label, 100*x.rotated)
			}
		}),
		report.Draw(chart.Chart{Title: "Error by what shares a scale", Y: "relative error, percent", LogY: true}, func(p *report.Plot) {
			for _, r := range granularities() {
				for _, kind := range kinds() {
					p.Add(chart.Series{Name: r.name, Mark: chart.Dots}, kind, 100*s.scaledBy(kind, r.name))
				}
			}
		}),
		s.caching.perplexityChart(),
		s.caching.costChart(),
	}
}

func joined(name string) chart.Series { return chart.Series{Name: name, Mark: chart.Joined} }

func rings(name string) chart.Series { return chart.Series{Name: name, Mark: chart.Rings} }

func (s *study) growthChart(values string) chart.Chart {
	p := report.Plot{Chart: chart.Chart{Title: "Error of P·V by the length of K, values " + values, X: "keys", Y: "relative error, percent", LogX: true, LogY: true}}
	for i, way := range adders() {
		for _, keys := range s.lengths() {
			p.Add(joined(way.name), keys, 100*s.growthOf(values, keys, i).relative)
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

func (s *study) tables() []report.Table {
	return []report.Table{
		report.Write(report.Table{
			Name: "published", Title: "Beside what was published",
			Columns: []string{"figure", "source", "published", "here", "here over published", "where it differs by more than 10 %"},
		}, func(t *report.Table) {
			add := func(figure, source string, published, here float64, why string) {
				if off(here, published) <= 0.1 {
					why = ""
				}
				t.Add(figure, source, published, here, here/published, why)
			}
			for _, l := range []lift{highLazy, lowLazy} {
				for i, here := range s.errorsOf(l) {
					add(fmt.Sprintf("relative error, P lifted by %v, spread %v", l, deviations[i]), "flash-attention 2694", published2694[l][i], here,
						"other random numbers and rows; how K, V and the scale were made there is not said, and the error depends on how often a maximum is late")
				}
			}
			for _, f := range s.flushes {
				if f.formula() >= 0.02 {
					add(fmt.Sprintf("share of P that vanishes, S = %v, Δ = %v", f.factor, f.delta), "arXiv 2606.06521, Φ(Δ+1-6.93-ln S)", f.formula(), f.forward,
						fmt.Sprintf("the formula has the mean of the largest sink, whose spread widens the rise: with it the share is %.3g", f.expected))
				}
			}
			for _, factor := range []float64{1, 256} {
				add(fmt.Sprintf("Δ at which half of P vanishes, S = %v", factor), "arXiv 2606.06521", halfPublished(factor), half(s.flushOf(factor)), "read between two Δ in proportion")
			}
			plain, best := s.compared(tensorScales), s.compared(blockRotated)
			roots := s.comparedSize(tensorScales).roots
			unstated := fmt.Sprintf("length of K, dimension of the head and number of rows were not in what was read of the paper; all change the error (table rotation), "+
				"and so does chance: few outliers make most of it, and seeds have from %.2g to %.2g with tensor scales", slices.Min(roots), slices.Max(roots))
			add("root mean square error with outliers, tensor scales", "arXiv 2407.08608, Table 3", publishedTensor, plain, unstated)
			add("root mean square error with outliers, blocks and rotation", "arXiv 2407.08608, Table 3", publishedFA3, best, unstated)
			add("the first over the second", "arXiv 2407.08608", publishedRatio, plain/best, unstated)
		}),
		report.Lines(report.Table{
			Name: "spread", Title: "Error against the spread of scores",
			Columns: []string{"spread", "lift", "lag", "relative error %", "saturated P %"},
		}, s.spreads, func(x spread) []any {
			return []any{x.of, float64(x.lift.offset), float64(x.lift.threshold), 100 * x.relative, 100 * x.saturated}
		}),
		report.Lines(report.Table{
			Name: "vanishing", Title: "Share of P that vanishes behind four sinks",
			Columns: []string{"S", "Δ", "sinks first %", "expected %", "paper's formula %", "sinks last %", "squared error, first over last"},
		}, s.flushes, func(f flush) []any {
			return []any{f.factor, f.delta, 100 * f.forward, 100 * f.expected, 100 * f.formula(), 100 * f.reverse, f.ratio}
		}),
		report.Lines(report.Table{
			Name: "length", Title: "Error of P·V by the length of K. vLLM's needle at 128k tokens on H100: 91 % found in BF16, 13 % in FP8, 89 % with promotion",
			Columns: []string{"values", "keys", "adder", "relative error %", "bias %"},
		}, s.growths, func(g growth) []any {
			return []any{g.values, g.keys, adders()[g.adder].name, 100 * g.relative, 100 * g.bias}
		}),
		report.Lines(report.Table{
			Name: "rotation", Title: "Root mean square error with outliers",
			Columns: []string{"keys", "dim", "recipe", "error", "seeds", "largest", "smallest"},
		}, s.rotations, func(r rotation) []any {
			return []any{r.keys, r.dim, fa3Recipes()[r.recipe].name, r.mean(), len(r.roots), slices.Max(r.roots), slices.Min(r.roots)}
		}),
		report.Lines(report.Table{
			Name: "smoothing", Title: "Error by the bias of 8 channels of K, tensor scales",
			Columns: []string{"bias", "as it is %", "smooth K %", "rotated %"},
		}, s.smoothing, func(x smoothed) []any { return []any{x.bias, 100 * x.plain, 100 * x.smooth, 100 * x.rotated} }),
		report.Lines(report.Table{
			Name: "scales", Title: "Error by what shares a scale",
			Columns: []string{"operands", "a scale for each", "relative error %"},
		}, s.scales, func(x scaled) []any { return []any{x.kind, x.of, 100 * x.relative} }),
		s.caching.costTable(),
		s.caching.modelTable(),
	}
}

func (c *caching) costTable() report.Table {
	t := report.Table{Name: "cache", Title: "What a cache costs a model: perplexity of bytes, mean of the models",
		Columns: []string{"cache", "first byte", "last byte", "perplexity", "loss", "above BF16", "two standard errors", "perplexity above BF16 %"}}
	for way, k := range keepings() {
		for part := range c.whole() + 1 {
			first, last := c.between(part)
			loss := c.loss(way, part)
			mean, twice := c.cost(way, inBF16, part)
			t.Add(k.name, first, last, math.Exp(loss), loss, mean, twice, 100*math.Expm1(mean))
		}
	}
	return t
}

func (c *caching) modelTable() report.Table {
	t := report.Table{Name: "models", Title: "Each model, all bytes", Columns: []string{"seed", "cache", "loss", "above BF16"}}
	for i, m := range c.models {
		one := &caching{config: c.config, models: c.models[i : i+1]}
		for way, k := range keepings() {
			mean, _ := one.cost(way, inBF16, c.whole())
			t.Add(int(m.seed), k.name, one.loss(way, c.whole()), mean)
		}
	}
	return t
}
