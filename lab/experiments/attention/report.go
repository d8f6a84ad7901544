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
		Goals: slices.Concat(s.spreadGoals(), s.flushGoals(), s.growthGoals(), s.rotationGoals(), s.otherGoals(), s.caching.goals()),
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

// farthest is the largest of how far figures are from published ones.
func farthest(got, published []float64) (most float64) {
	for i := range got {
		if o := off(got[i], published[i]); !(o <= most) { // or NaN
			most = o
		}
	}
	return most
}

const alike = 2 // spreads at which a lagging maximum hardly matters

func (s *study) spreadGoals() []report.Goal {
	published := published2694[highLazy]
	return []report.Goal{
		declared().Judge("lift-4", s.by(func(d *study) float64 { return 100 * farthest(d.errorsOf(lowLazy), published2694[lowLazy]) })),
		declared().Judge("lift-8-alike", s.by(func(d *study) float64 { return 100 * farthest(d.errorsOf(highLazy)[:alike], published[:alike]) })),
		declared().Judge("lift-8-spread", s.by(func(d *study) float64 { return 100 * farthest(d.errorsOf(highLazy)[alike:], published[alike:]) })),
		declared().Judge("lag", s.by((*study).lag)),
		declared().Judge("lift-8-late", s.by(func(d *study) float64 {
			return d.errorsOf(highLazy)[len(deviations)-1] / d.errorsOf(lowLazy)[len(deviations)-1]
		})),
	}
}

// lag is the largest error with a lag of 2^0.75 over that of none.
func (s *study) lag() (most float64) {
	strict := s.errorsOf(highStrict)
	for i, e := range s.errorsOf(highBarely) {
		most = max(most, e/strict[i])
	}
	return most
}

func (s *study) spreadFinding() report.Finding {
	high, low := s.errorsOf(highLazy), s.errorsOf(lowLazy)
	n := len(high) - 1
	return report.NewFinding(fmt.Sprintf("Where the maximum may lag by 2^4, a lift of 2^8 has an error of %s at a spread of %v and of %s at %v, a lift of 2^4 of %s and %s.",
		report.Percent(high[0]), deviations[0], report.Percent(high[n]), deviations[n], report.Percent(low[0]), report.Percent(low[n])),
		report.If(high[n] > 3*low[n] && high[0] < 1.5*low[0], "P that saturates is the whole difference: where scores are alike there is none.", "That is not the difference that was published."),
		report.If(s.errorsOf(highStrict)[n] < low[n], "A maximum that does not lag and a lift of 2^8 are better than both.", "A maximum that does not lag is no better than a lift of 2^4."))
}

func (s *study) flushGoals() []report.Goal {
	goals := []report.Goal{
		declared().Judge("vanishing-expected", s.by((*study).offExpected)),
		declared().Judge("vanishing-formula", s.by((*study).offFormula)),
		declared().Judge("half-plain", s.by(func(d *study) float64 { return half(d.flushOf(1)) })),
		declared().Judge("half-lifted", s.by(func(d *study) float64 { return half(d.flushOf(256)) })),
		declared().Judge("sinks-last", s.by((*study).bestOrder)),
		declared().Judge("sinks-last-lifted", s.by((*study).vanishingLast)),
	}
	return goals
}

// offExpected is how far the share that vanishes is from what the distribution of the first
// maximum has it, in percent of that, at most.
func (s *study) offExpected() (most float64) {
	for _, f := range s.flushes {
		if f.expected >= 0.02 {
			most = max(most, 100*off(f.forward, f.expected))
		}
	}
	return most
}

// offFormula is how far it is from the paper's formula, at most.
func (s *study) offFormula() (most float64) {
	for _, f := range s.flushes {
		most = max(most, math.Abs(f.forward-f.formula()))
	}
	return most
}

// vanishingLast is the largest share that vanishes where P is lifted and sinks are last, in
// percent.
func (s *study) vanishingLast() (most float64) {
	for _, f := range s.flushOf(256) {
		if f.delta <= 8 {
			most = max(most, 100*f.reverse)
		}
	}
	return most
}

// halfPublished is the Δ at which the paper's formula is one half.
func halfPublished(factor float64) float64 { return smallestP + math.Log(factor) - sinkDelta }

// bestOrder is how many times lower the squared error is with sinks last, at most.
func (s *study) bestOrder() (most float64) {
	for _, f := range s.flushOf(1) {
		most = max(most, f.ratio)
	}
	return most
}

func (s *study) flushFinding() report.Finding {
	var plain, lifted flush
	for _, f := range s.flushes {
		if f.delta == 8 {
			if f.factor == 1 {
				plain = f
			} else {
				lifted = f
			}
		}
	}
	return report.NewFinding(fmt.Sprintf("Four sinks that are 8 above the other scores and come first let %s of P vanish, and %s where they come last; multiplied by 256, %s and %s.",
		report.Percent(plain.forward), report.Percent(plain.reverse), report.Percent(lifted.forward), report.Percent(lifted.reverse)),
		report.If(plain.forward > 100*lifted.forward, "The lift is what P needs.", "The lift does not help much."),
		report.If(plain.reverse < plain.forward/2, "Another order helps, too: keys that come before the sinks are rounded relative to a maximum of their own.", "The order makes no great difference."))
}

func (s *study) growthGoals() []report.Goal {
	lengths := s.lengths()
	short, long := lengths[0], lengths[len(lengths)-1]
	mended := func(d *study) (most float64) {
		for _, values := range []string{centred, oneSign} {
			most = max(most, d.growthOf(values, long, promoted).relative/d.growthOf(values, long, exactAdder).relative)
		}
		return most
	}
	return []report.Goal{
		declared().Judge("length", s.by(func(d *study) float64 {
			return d.growthOf(oneSign, long, carried).relative / d.growthOf(oneSign, short, carried).relative
		})),
		declared().Judge("length-promoted", s.by(mended)),
		declared().Judge("length-bias", s.by(func(d *study) float64 { return 100 * d.growthOf(oneSign, long, carried).bias })),
	}
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

func (s *study) rotationGoals() []report.Goal {
	plain := func(d *study) float64 { return d.compared(tensorScales) }
	best := func(d *study) float64 { return d.compared(blockRotated) }
	return []report.Goal{
		declared().Judge("outliers-ratio", s.by(func(d *study) float64 { return plain(d) / best(d) })),
	}
}

func (s *study) rotationFinding() report.Finding {
	plain, blocks, rotated, both := s.compared(tensorScales), s.compared(blockScales), s.compared(tensorRotated), s.compared(blockRotated)
	return report.NewFinding(fmt.Sprintf("With outliers the error of tensor scales is %.2f times that of scales of 128 tokens, %.2f times that after a rotation, and %.2f times that of both.", plain/blocks, plain/rotated, plain/both),
		report.If(plain/rotated > plain/blocks, "Rotation is the larger part.", "Rotation is not the larger part."),
		report.If(math.Abs(rotated/both-1) < 0.1, "With it, blocks make no difference to speak of.", "With it, blocks make a difference.")).AtLength()
}

func (s *study) otherGoals() []report.Goal {
	least := func(d *study) float64 {
		least := math.Inf(1)
		for _, kind := range []string{plainKind, outlierKind, tokenKind} {
			least = min(least, d.scaledBy(kind, "token")/d.scaledBy(kind, "tensor"))
		}
		return least
	}
	return []report.Goal{
		declared().Judge("smooth-biased", s.by(func(d *study) float64 { return d.smoothedAt(64).smooth / d.smoothedAt(64).plain })),
		declared().Judge("smooth-unbiased", s.by(func(d *study) float64 { return 100 * off(d.smoothedAt(0).smooth, d.smoothedAt(0).plain) })),
		declared().Judge("token-scales", s.by(least)),
		declared().Judge("huge-key", s.by(func(d *study) float64 { return d.scaledBy(keyKind, "token") / d.scaledBy(keyKind, "tensor") })),
		declared().Judge("huge-value", s.by(func(d *study) float64 {
			return 100 * min(d.scaledBy(valueKind, "token"), d.scaledBy(valueKind, "tensor"))
		})),
	}
}

func (s *study) smoothingFinding() report.Finding {
	x := s.smoothedAt(64)
	return report.NewFinding(fmt.Sprintf("With %d of 128 channels of K 64 standard deviations from zero, tensor scales have an error of %s, on smooth K %s, and after a rotation %s.",
		biased, report.Percent(x.plain), report.Percent(x.smooth), report.Percent(x.rotated)),
		report.If(x.smooth < x.rotated/1.1, "Smoothing takes the bias away, which rotation only spreads.", "Smoothing is not better than rotation."))
}

func (s *study) scaleFinding() report.Finding {
	normal := s.scaledBy(plainKind, "token") / s.scaledBy(plainKind, "tensor")
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
	return []chart.Chart{s.spreadChart(), s.flushChart(), s.growthChart(centred), s.growthChart(oneSign), s.rotationChart(), s.smoothingChart(), s.scaleChart(), s.caching.perplexityChart(), s.caching.costChart()}
}

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

func (s *study) tables() []report.Table {
	return []report.Table{s.publishedTable(), s.spreadTable(), s.flushTable(), s.growthTable(), s.rotationTable(), s.smoothingTable(), s.scaleTable(), s.caching.costTable(), s.caching.modelTable()}
}

// publishedTable has our figures beside the published ones, and why they may differ.
func (s *study) publishedTable() report.Table {
	t := report.Table{
		Name: "published", Title: "Beside what was published",
		Columns: []string{"figure", "source", "published", "here", "here over published", "where it differs by more than 10 %"},
	}
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
	return t
}

func (s *study) spreadTable() report.Table {
	t := report.Table{Name: "spread", Title: "Error against the spread of scores", Columns: []string{"spread", "lift", "lag", "relative error %", "saturated P %"}}
	for _, x := range s.spreads {
		t.Add(x.of, float64(x.lift.offset), float64(x.lift.threshold), 100*x.relative, 100*x.saturated)
	}
	return t
}

func (s *study) flushTable() report.Table {
	t := report.Table{Name: "vanishing", Title: "Share of P that vanishes behind four sinks",
		Columns: []string{"S", "Δ", "sinks first %", "expected %", "paper's formula %", "sinks last %", "squared error, first over last"}}
	for _, f := range s.flushes {
		t.Add(f.factor, f.delta, 100*f.forward, 100*f.expected, 100*f.formula(), 100*f.reverse, f.ratio)
	}
	return t
}

func (s *study) growthTable() report.Table {
	t := report.Table{Name: "length", Title: "Error of P·V by the length of K. vLLM's needle at 128k tokens on H100: 91 % found in BF16, 13 % in FP8, 89 % with promotion",
		Columns: []string{"values", "keys", "adder", "relative error %", "bias %"}}
	for _, g := range s.growths {
		t.Add(g.values, g.keys, adders()[g.adder].name, 100*g.relative, 100*g.bias)
	}
	return t
}

func (s *study) rotationTable() report.Table {
	t := report.Table{Name: "rotation", Title: "Root mean square error with outliers", Columns: []string{"keys", "dim", "recipe", "error", "seeds", "largest", "smallest"}}
	for _, r := range s.rotations {
		t.Add(r.keys, r.dim, fa3Recipes()[r.recipe].name, r.mean(), len(r.roots), slices.Max(r.roots), slices.Min(r.roots))
	}
	return t
}

func (s *study) smoothingTable() report.Table {
	t := report.Table{Name: "smoothing", Title: "Error by the bias of 8 channels of K, tensor scales", Columns: []string{"bias", "as it is %", "smooth K %", "rotated %"}}
	for _, x := range s.smoothing {
		t.Add(x.bias, 100*x.plain, 100*x.smooth, 100*x.rotated)
	}
	return t
}

func (s *study) scaleTable() report.Table {
	t := report.Table{Name: "scales", Title: "Error by what shares a scale", Columns: []string{"operands", "a scale for each", "relative error %"}}
	for _, x := range s.scales {
		t.Add(x.kind, x.of, 100*x.relative)
	}
	return t
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
