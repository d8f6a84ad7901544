package attention

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/lab/report"
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

func within(what string, share, got float64) report.Goal {
	return report.NewGoal(what, fmt.Sprintf("within %v %%", 100*share), report.Percent(got), got <= share)
}

const alike = 2 // spreads at which a lagging maximum hardly matters

func (s *study) spreadGoals() []report.Goal {
	high, low := s.errorsOf(highLazy), s.errorsOf(lowLazy)
	published := published2694[highLazy]
	return []report.Goal{
		within("P lifted by 2^4, five spreads of scores: farthest from flash-attention 2694", 0.1, farthest(low, published2694[lowLazy])).AtLength(),
		within("P lifted by 2^8, spreads 0.25 and 0.5: farthest from it", 0.1, farthest(high[:alike], published[:alike])).AtLength(),
		within("P lifted by 2^8, spreads 1 to 2: farthest from it", 0.25, farthest(high[alike:], published[alike:])).AtLength(),
		s.lagGoal(),
	}
}

func (s *study) lagGoal() report.Goal {
	most := 0.0
	strict := s.errorsOf(highStrict)
	for i, e := range s.errorsOf(highBarely) {
		most = max(most, e/strict[i])
	}
	return report.NewGoal("P lifted by 2^8, a lag of 2^0.75: error over that without a lag, at most", "1.2", fmt.Sprintf("%.2f", most), most <= 1.2)
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
	expected, formula, last := 0.0, 0.0, 0.0
	for _, f := range s.flushes {
		if f.expected >= 0.02 {
			expected = max(expected, off(f.forward, f.expected))
		}
		formula = max(formula, math.Abs(f.forward-f.formula()))
		if f.factor == 256 && f.delta <= 8 {
			last = max(last, f.reverse)
		}
	}
	goals := []report.Goal{
		within("Share of P that vanishes, sinks first: farthest from what the first maximum's distribution has it", 0.1, expected).AtLength(),
		report.NewGoal("The same: farthest from Φ(Δ+1-6.93-ln S)", "at most 0.1", fmt.Sprintf("%.3f", formula), formula <= 0.1).AtLength(),
	}
	for _, factor := range []float64{1, 256} {
		at, published := half(s.flushOf(factor)), halfPublished(factor)
		goals = append(goals, report.NewGoal(fmt.Sprintf("Δ at which half of P vanishes, S = %v", factor), fmt.Sprintf("%.2f within 10 %%", published),
			fmt.Sprintf("%.2f", at), off(at, published) <= 0.1))
	}
	most := s.bestOrder()
	return append(goals,
		report.NewGoal("S = 1: squared error, sinks first over sinks last, at most", "3 to 10", fmt.Sprintf("%.1f", most), most >= 3 && most <= 10).AtLength(),
		report.NewGoal("S = 256, Δ up to 8, sinks last: share of P that vanishes", "below 0.01 %", report.Percent(last), last < 1e-4).AtLength())
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
	lost := s.growthOf(oneSign, long, carried)
	grown := lost.relative / s.growthOf(oneSign, short, carried).relative
	mended := 0.0
	for _, values := range []string{centred, oneSign} {
		mended = max(mended, s.growthOf(values, long, promoted).relative/s.growthOf(values, long, exactAdder).relative)
	}
	return []report.Goal{
		report.NewGoal(fmt.Sprintf("Hopper, V of one sign, no promotion: error at %d keys over that at %d", long, short), "at least 10", fmt.Sprintf("%.1f", grown), grown >= 10).AtLength(),
		report.NewGoal("The same with FP32 every 128 keys: error over that of exact addition, at most", "1.5", fmt.Sprintf("%.2f", mended), mended <= 1.5).AtLength(),
		report.NewGoal(fmt.Sprintf("No promotion, %d keys: mean relative error", long), "below -5 %", report.Percent(lost.bias), lost.bias < -0.05).AtLength(),
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
	plain, best := s.compared(tensorScales), s.compared(blockRotated)
	return []report.Goal{
		report.NewGoal("Outliers, tensor scales: root mean square error", fmt.Sprintf("%.2g within 10 %%", publishedTensor), fmt.Sprintf("%.3g", plain), off(plain, publishedTensor) <= 0.1).AtLength(),
		report.NewGoal("Outliers, scales of 128 tokens and rotation", fmt.Sprintf("%.2g within 15 %%", publishedFA3), fmt.Sprintf("%.3g", best), off(best, publishedFA3) <= 0.15).AtLength(),
		report.NewGoal("The first over the second", "at least 2", fmt.Sprintf("%.2f", plain/best), plain/best >= 2).AtLength(),
	}
}

func (s *study) rotationFinding() report.Finding {
	plain, blocks, rotated, both := s.compared(tensorScales), s.compared(blockScales), s.compared(tensorRotated), s.compared(blockRotated)
	return report.NewFinding(fmt.Sprintf("With outliers the error of tensor scales is %.2f times that of scales of 128 tokens, %.2f times that after a rotation, and %.2f times that of both.", plain/blocks, plain/rotated, plain/both),
		report.If(plain/rotated > plain/blocks, "Rotation is the larger part.", "Rotation is not the larger part."),
		report.If(math.Abs(rotated/both-1) < 0.1, "With it, blocks make no difference to speak of.", "With it, blocks make a difference.")).AtLength()
}

func (s *study) otherGoals() []report.Goal {
	flat, steep := s.smoothedAt(0), s.smoothedAt(64)
	least := math.Inf(1)
	for _, kind := range []string{plainKind, outlierKind, tokenKind} {
		least = min(least, s.scaledBy(kind, "token")/s.scaledBy(kind, "tensor"))
	}
	key := s.scaledBy(keyKind, "token") / s.scaledBy(keyKind, "tensor")
	value := min(s.scaledBy(valueKind, "token"), s.scaledBy(valueKind, "tensor"))
	return []report.Goal{
		report.NewGoal("K with a bias of 64: error with smoothing over that without", "at most 0.15", fmt.Sprintf("%.3f", steep.smooth/steep.plain), steep.smooth <= 0.15*steep.plain).AtLength(),
		within("K without a bias: what smoothing changes", 0.1, off(flat.smooth, flat.plain)).AtLength(),
		report.NewGoal("Three kinds of operands: error with scales per token over that per tensor, at least", "0.67", fmt.Sprintf("%.2f", least), least >= 0.67).AtLength(),
		report.NewGoal("A key 2^16 times larger that no query sees: the same", "at most 0.5", fmt.Sprintf("%.2f", key), key <= 0.5),
		report.NewGoal("Such a value: the smaller error", "above 50 %", report.Percent(value), value > 0.5).AtLength(),
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

// What a cache may cost, in nats per byte, and what a control must.
const (
	allowedCost       = 0.002
	allowedDifference = 0.001
	leastControl      = 0.01
	leastGain         = 0.05
)

func (c *caching) goals() []report.Goal {
	atMost := func(what string, limit, got float64) report.Goal {
		return report.NewGoal(what, fmt.Sprintf("at most %v", limit), fmt.Sprintf("%.2g", got), got <= limit).AtLength()
	}
	atLeast := func(what string, limit, got float64) report.Goal {
		return report.NewGoal(what, fmt.Sprintf("at least %v", limit), fmt.Sprintf("%.2g", got), got >= limit).AtLength()
	}
	ways := keepings()
	gain, twice := c.gain()
	goals := []report.Goal{atLeast("Cache in BF16: nats per byte by which the last half of a window is easier than the first eighth, less two standard errors", leastGain, gain-twice)}
	for way := byToken; way <= unscaled; way++ {
		goals = append(goals, atMost("Cache in "+ways[way].name+": nats per byte above BF16 and two standard errors, in the range where that is most", allowedCost, c.most(way)))
	}
	mean, twice := c.growth(byToken)
	goals = append(goals, atMost("Scales for each token and head: what they cost more in the last half of a window than in the first eighth, and two standard errors", allowedDifference, mean+twice))
	mean, twice = c.cost(byLayer, byToken, c.whole())
	goals = append(goals, atMost("One scale for each layer against those: difference, and two standard errors", allowedDifference, math.Abs(mean)+twice))
	for way := tooLarge; way <= tooSmall; way++ {
		mean, twice := c.cost(way, inBF16, c.whole())
		goals = append(goals, atLeast("Nats per byte above BF16 less two standard errors, "+ways[way].name, leastControl, mean-twice))
	}
	return goals
}

func (c *caching) finding() report.Finding {
	last := c.whole() - 1
	text := fmt.Sprintf("Models of %d bytes of context have a perplexity of %.3f in the first eighth of it and of %.3f in the last half with a cache in BF16. There a cache in E4M3 raises perplexity by",
		c.config.Context, math.Exp(c.loss(inBF16, 0)), math.Exp(c.loss(inBF16, last)))
	most := math.Inf(-1)
	for way := byToken; way <= unscaled; way++ {
		mean, _ := c.cost(way, inBF16, last)
		text += fmt.Sprintf(" %s (%s),", report.Percent(math.Expm1(mean)), strings.TrimPrefix(keepings()[way].name, "E4M3, "))
		most = max(most, c.most(way))
	}
	large, _ := c.cost(tooLarge, inBF16, last)
	small, _ := c.cost(tooSmall, inBF16, last)
	growth, twice := c.growth(byToken)
	between, error := c.cost(byLayer, byToken, c.whole())
	return report.NewFinding(fmt.Sprintf("%s and scales that are 2^17 too large or 2^4 too small by %s and %s.", text, report.Percent(math.Expm1(large)), report.Percent(math.Expm1(small))),
		report.If(most <= allowedCost, "Such a cache costs next to nothing, whatever shares a scale.", "Such a cache has a cost that is seen."),
		report.If(growth <= twice, "That it would cost more with length is not seen.", "It costs more with length."),
		report.If(math.Abs(between) <= error, "Scales for each token and head are not seen to be better than one for each layer.", "One scale for each layer and those for each token and head are not the same.")).AtLength()
}

func (s *study) charts() []chart.Chart {
	return []chart.Chart{s.spreadChart(), s.flushChart(), s.growthChart(centred), s.growthChart(oneSign), s.rotationChart(), s.smoothingChart(), s.scaleChart(), s.caching.perplexityChart(), s.caching.costChart()}
}
