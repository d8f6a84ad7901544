package attention

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/flash"
)

// lift is how P is lifted, and how far the maximum may lag, both in base 2.
type lift struct{ offset, threshold float32 }

func (l lift) String() string {
	return fmt.Sprintf("2^%v, lag 2^%v", l.offset, l.threshold)
}

var (
	highLazy   = lift{8, 4} // FlashAttention-4's at first
	lowLazy    = lift{4, 4}
	highStrict = lift{8, 0} // FlashAttention-4's now
	highBarely = lift{8, 0.75}
)

func lifts() []lift { return []lift{highLazy, lowLazy, highStrict, highBarely} }

// deviations are standard deviations of scores, in natural units.
var deviations = []float64{0.25, 0.5, 1, 1.5, 2}

// published2694 are the relative errors in flash-attention's pull request 2694.
var published2694 = map[lift][]float64{
	highLazy: {0.027, 0.031, 0.136, 0.305, 0.361},
	lowLazy:  {0.027, 0.028, 0.027, 0.024, 0.022},
}

// spread is what a lift loses at a spread of scores.
type spread struct {
	of        float64 // standard deviation of scores
	lift      lift
	relative  float64 // error
	saturated float64 // share of P
}

// spreadJobs: rows of one head over 8192 keys, as in pull request 2694.
func (s *study) spreadJobs() []job {
	rows, keys := lab.Pick(s.o, 128, 128, 16), lab.Pick(s.o, 8192, 8192, 1024)
	const dim = 128
	return statistics.Each(deviations, func(of float64) job {
		return job{fmt.Sprintf("scores of spread %v", of), rows * keys * 2 * dim * (1 + len(lifts())), func(ctx context.Context) error {
			next := generator(s.o.Seed, forSpreads)
			a := random(rows, keys, dim, dim, func() float64 { return max(-3, min(3, next.NormFloat64())) })
			scale := of / math.Sqrt(dim)
			p := a.rounded(scale)
			exact := a.exact(scale, attention.Mask{}, s.o.Workers)
			for _, l := range lifts() {
				got, err := s.predict(ctx, p, flash.Kernel{Tile: 128, Descending: true, Offset: l.offset, Threshold: l.threshold, P: flash.E4M3})
				if err != nil {
					return err
				}
				s.spreads = append(s.spreads, spread{of, l, deviationOf(got.Out, exact).relative, float64(got.Saturated) / float64(rows*keys)})
			}
			return nil
		}}
	})
}

// errorsOf returns the errors of a lift, by spread.
func (s *study) errorsOf(l lift) []float64 {
	of := slices.DeleteFunc(slices.Clone(s.spreads), func(x spread) bool { return x.lift != l })
	return statistics.Each(of, func(x spread) float64 { return x.relative })
}

const (
	sinks     = 4
	flushTile = 128
	sinkDelta = 1.0 // δ of the paper for four sinks
)

// flushDeltas are by how much scores of sinks are larger on average.
var flushDeltas = []float64{4, 5, 6, 7, 8, 10, 12, 14}

// flush is what of P vanishes when the keys before all others are sinks.
type flush struct {
	factor   float64 // S, which P is multiplied by
	delta    float64
	forward  float64 // share of P that is rounded to zero, sinks first
	reverse  float64 // and sinks last
	expected float64 // share by the distribution of the first tile's maximum
	ratio    float64 // squared error of P·V, sinks first over sinks last
}

// formula is the paper's share.
func (f flush) formula() float64 { return phi(f.delta + sinkDelta - smallestP - math.Log(f.factor)) }

// smallestP is how far a score may be below the maximum: E4M3 rounds 2^-10 to zero.
const smallestP = 10 * math.Ln2

// phi is the distribution function of the normal distribution.
func phi(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// expectedFlush is the share that vanishes, on average over the maximum of the first tile:
// the larger one of four sinks and of its other keys.
func expectedFlush(delta, factor float64) (share float64) {
	below := func(x float64) float64 { return math.Pow(phi(x-delta), sinks) * math.Pow(phi(x), flushTile-sinks) }
	const step = 1e-3
	for x := -2.0; x < delta+8; x += step {
		share += (below(x+step) - below(x)) * phi(x+step/2-smallestP-math.Log(factor))
	}
	return share
}

// flushJobs: rows of scores from N(0, 1), and N(Δ, 1) for the first four keys. Q is the
// identity, so that K has the scores themselves.
func (s *study) flushJobs() []job {
	rows, keys := lab.Pick(s.o, 64, 64, 16), lab.Pick(s.o, 4096, 4096, 1024)
	var jobs []job
	for _, factor := range []float64{1, 256} {
		for _, delta := range flushDeltas {
			jobs = append(jobs, job{fmt.Sprintf("sinks %v above, S = %v", delta, factor), 4 * rows * keys * rows, func(ctx context.Context) error {
				f, err := s.flush(ctx, rows, keys, factor, delta)
				s.flushes = append(s.flushes, f)
				return err
			}})
		}
	}
	return jobs
}

func (s *study) flush(ctx context.Context, rows, keys int, factor, delta float64) (flush, error) {
	a := random(rows, keys, rows, rows, generator(s.o.Seed, forFlushes).NormFloat64)
	clear(a.q)
	for i := range rows {
		a.q[i*rows+i] = 1
	}
	for i := range sinks * rows {
		a.k[i] += float32(delta)
	}
	p := &attention.Problem{Q: bfloat16s(a.q, rows), K: bfloat16s(a.k, keys), V: round(a.v, keys), Scale: 1}
	exact := a.exact(1, attention.Mask{}, s.o.Workers)
	f := flush{factor: factor, delta: delta, expected: expectedFlush(delta, factor)}
	kernel := flash.Kernel{Tile: flushTile, Offset: float32(math.Log2(factor)), P: flash.E4M3}
	kernel.Scores.Product.Order = flash.Contract
	var errors [2]float64
	for i, share := range []*float64{&f.forward, &f.reverse} {
		kernel.Descending = i == 1
		got, err := s.predict(ctx, p, kernel)
		if err != nil {
			return f, err
		}
		*share = float64(got.Flushed) / float64(rows*(keys-sinks))
		errors[i] = deviationOf(got.Out, exact).root
	}
	f.ratio = math.Pow(errors[0]/errors[1], 2)
	return f, nil
}

// bfloat16s makes values those of bfloat16, and returns them as an operand.
func bfloat16s(values []float32, tokens int) attention.Operand {
	o := attention.Operand{BFloat16: make([]fp8.BFloat16, len(values)), Shape: [3]int{1, tokens, len(values) / tokens}}
	for i, v := range values {
		o.BFloat16[i] = fp8.BFloat16FromFloat32(v)
		values[i] = o.BFloat16[i].Float32()
	}
	return o
}

// flushOf returns what came out for one S, by delta.
func (s *study) flushOf(factor float64) []flush {
	return slices.DeleteFunc(slices.Clone(s.flushes), func(f flush) bool { return f.factor != factor })
}

// half returns the delta at which half of P vanishes, between two in proportion.
func half(of []flush) float64 {
	for i := 1; i < len(of); i++ {
		if a, b := of[i-1], of[i]; a.forward < 0.5 && b.forward >= 0.5 {
			return a.delta + (b.delta-a.delta)*(0.5-a.forward)/(b.forward-a.forward)
		}
	}
	return math.NaN()
}

// adder is a way to add the products of P·V.
type adder struct {
	name   string
	tile   int
	values flash.Product
}

// The adders, by their places in adders.
const (
	exactAdder = iota
	promoted
	promotedBy4
	promotedBy64
	carried
)

func adders() []adder {
	hopper := flash.Product{Order: flash.Instruction, Model: oracle.HopperWGMMA()}
	carry := hopper
	carry.Carry = true
	return []adder{
		{"exact", 128, flash.Product{}},
		{"Hopper, FP32 every 128 keys", 128, hopper},
		{"Hopper, FP32 every 512 keys", 512, hopper},
		{"Hopper, FP32 every 8192 keys", 8192, hopper},
		{"Hopper, no promotion", 128, carry},
	}
}

// The values of V.
const (
	centred = "normal"
	oneSign = "uniform [0, 1)"
)

// growth is what an adder loses at a length of K.
type growth struct {
	values string
	keys   int
	adder  int
	deviation
}

func (s *study) lengths() []int {
	return lab.Pick(s.o, []int{1024, 4096, 16384, 65536, 131072}, []int{1024, 4096, 16384, 65536, 131072}, []int{1024, 4096})
}

// growthJobs: P·V over more and more keys, with scores from N(0, 1).
func (s *study) growthJobs() []job {
	rows, dim, valueDim := lab.Pick(s.o, 8, 8, 4), 64, lab.Pick(s.o, 32, 32, 8)
	var jobs []job
	for _, values := range []string{centred, oneSign} {
		for _, keys := range s.lengths() {
			// A product of a tensor core takes as long as ten others.
			work := rows * keys * (dim*len(adders()) + 10*valueDim*(len(adders())-1))
			jobs = append(jobs, job{fmt.Sprintf("%d keys, %s values", keys, values), work, func(ctx context.Context) error {
				next := generator(s.o.Seed, forGrowths)
				a := random(rows, keys, dim, valueDim, next.NormFloat64)
				if values == oneSign {
					for i := range a.v {
						a.v[i] = float32(next.Float64())
					}
				}
				scale := 1 / math.Sqrt(float64(dim))
				p := a.rounded(scale)
				exact := a.exact(scale, attention.Mask{}, s.o.Workers)
				for i, way := range adders() {
					got, err := s.predict(ctx, p, flash.Kernel{Tile: way.tile, Offset: 8, P: flash.E4M3, Values: way.values})
					if err != nil {
						return err
					}
					s.growths = append(s.growths, growth{values, keys, i, deviationOf(got.Out, exact)})
				}
				return nil
			}})
		}
	}
	return jobs
}

// growthOf returns the deviation of an adder at a length.
func (s *study) growthOf(values string, keys, adder int) deviation {
	return s.growths[slices.IndexFunc(s.growths, func(g growth) bool {
		return g.values == values && g.keys == keys && g.adder == adder
	})].deviation
}

// The recipes of FlashAttention-3's table, by their places in fa3Recipes.
const (
	tensorScales = iota
	blockScales
	tensorRotated
	blockRotated
)

func fa3Recipes() []recipe {
	return []recipe{
		{name: "tensor scales, P not lifted"},
		{"scales of 128 tokens", blocks(), 8},
		{"tensor scales, rotated", rotated(attention.Recipe{}), 8},
		{"scales of 128 tokens, rotated", rotated(blocks()), 8},
	}
}

// What FlashAttention-3's Table 3 has.
const (
	publishedTensor = 2.4e-2
	publishedFA3    = 9.1e-3
	publishedRatio  = 2.6
)

// rotation is the error of a recipe on operands with outliers.
type rotation struct {
	dim, keys, recipe int
	roots             []float64 // root mean square error of each seed
}

func (r rotation) mean() float64 { return statistics.Mean(r.roots) }

// rotationSizes are heads' dimensions and lengths; the last is compared with the paper.
func (s *study) rotationSizes() [][2]int {
	return lab.Pick(s.o, [][2]int{{64, 2048}, {128, 2048}, {128, 8192}}, [][2]int{{64, 2048}, {128, 2048}, {128, 8192}}, [][2]int{{64, 512}, {128, 1024}})
}

// outliers draws from N(0, 1) + N(0, 100)·Bernoulli(0.001).
func outliers(next *rand.Rand) func() float64 {
	return func() float64 {
		x := next.NormFloat64()
		if next.Float64() < 0.001 {
			x += 10 * next.NormFloat64()
		}
		return x
	}
}

func (s *study) rotationJobs() []job {
	rows := lab.Pick(s.o, 128, 128, 16)
	recipes := fa3Recipes()
	return statistics.Each(s.rotationSizes(), func(size [2]int) job {
		dim, keys := size[0], size[1]
		return job{fmt.Sprintf("outliers, %d keys of %d", keys, dim), (1 + len(recipes)) * rows * keys * 2 * dim, func(ctx context.Context) error {
			a := random(rows, keys, dim, dim, outliers(generator(s.o.Seed, forRotations)))
			scale := 1 / math.Sqrt(float64(dim))
			exact := a.exact(scale, attention.Mask{}, s.o.Workers)
			for i, r := range recipes {
				d, err := s.loss(ctx, r, a, scale, attention.Mask{}, exact, s.o.Seed)
				if err != nil {
					return err
				}
				s.rotations = append(s.rotations, rotation{dim: dim, keys: keys, recipe: i, roots: []float64{d.root}})
			}
			return nil
		}}
	})
}

// compared returns the error at the size that is compared with the paper.
func (s *study) compared(recipe int) float64 { return s.comparedSize(recipe).mean() }

func (s *study) comparedSize(recipe int) rotation {
	return s.rotations[len(s.rotations)-len(fa3Recipes())+recipe]
}

// biases are what some channels of K have in all tokens, in standard deviations.
var biases = []float64{0, 4, 16, 64}

// biased is how many of 128 channels are.
const biased = 8

// smoothed is the error with tensor scales where channels of K have a bias.
type smoothed struct {
	bias                   float64
	plain, smooth, rotated float64
}

func (s *study) smoothingJobs() []job {
	rows, keys := lab.Pick(s.o, 64, 64, 8), lab.Pick(s.o, 2048, 2048, 256)
	const dim = 128
	scale := 1 / math.Sqrt(dim)
	return statistics.Each(biases, func(bias float64) job {
		return job{fmt.Sprintf("K with a bias of %v", bias), 4 * rows * keys * 2 * dim, func(ctx context.Context) error {
			a := random(rows, keys, dim, dim, generator(s.o.Seed, forSmoothing).NormFloat64)
			addBias(a, bias)
			exact := a.exact(scale, attention.Mask{}, s.o.Workers)
			found := smoothed{bias: bias}
			for _, way := range []struct {
				to     *float64
				recipe recipe
			}{
				{&found.plain, recipe{offset: 8}},
				{&found.smooth, recipe{offset: 8, of: attention.Recipe{SmoothK: true}}},
				{&found.rotated, recipe{offset: 8, of: rotated(attention.Recipe{})}},
			} {
				d, err := s.loss(ctx, way.recipe, a, scale, attention.Mask{}, exact, s.o.Seed)
				if err != nil {
					return err
				}
				*way.to = d.relative
			}
			s.smoothing = append(s.smoothing, found)
			return nil
		}}
	})
}

// addBias adds a bias, of alternating sign, to the first channels of K.
func addBias(a *operands, bias float64) {
	for i := range a.k {
		if c := i % a.dim; c < biased {
			a.k[i] += float32(bias * float64(1-2*(c%2)))
		}
	}
}

// smoothedAt returns the errors at a bias.
func (s *study) smoothedAt(bias float64) smoothed { return s.smoothing[slices.Index(biases, bias)] }

// Kinds of operands for which scales are compared.
const (
	plainKind   = "normal"
	outlierKind = "outliers of one value in 1000"
	tokenKind   = "one token in 100 ten times larger"
	keyKind     = "a key 2^16 times larger, out of the window"
	valueKind   = "a value 2^16 times larger, out of the window"
)

func kinds() []string { return []string{plainKind, outlierKind, tokenKind, keyKind, valueKind} }

// granularities are how many tokens share a scale.
func granularities() []recipe {
	return []recipe{
		{name: "tensor", offset: 8},
		{"128 tokens", blocks(), 8},
		{"token", tokens(), 8},
	}
}

// scaled is what scales of a granularity lose.
type scaled struct {
	kind, of string
	relative float64
}

func (s *study) scaleJobs() []job {
	rows, keys := lab.Pick(s.o, 64, 64, 8), lab.Pick(s.o, 2048, 2048, 256)
	const dim = 128
	scale := 1 / math.Sqrt(dim)
	return statistics.Each(kinds(), func(kind string) job {
		return job{"scales, " + kind, 4 * rows * keys * 2 * dim, func(ctx context.Context) error {
			next := generator(s.o.Seed, forScales)
			draw := next.NormFloat64
			if kind == outlierKind {
				draw = outliers(next)
			}
			a := random(rows, keys, dim, dim, draw)
			mask := enlarge(a, kind)
			exact := a.exact(scale, mask, s.o.Workers)
			for _, r := range granularities() {
				d, err := s.loss(ctx, r, a, scale, mask, exact, s.o.Seed)
				if err != nil {
					return err
				}
				s.scales = append(s.scales, scaled{kind, r.name, d.relative})
			}
			return nil
		}}
	})
}

// enlarge makes tokens larger, as the kind has it, and returns what is masked.
func enlarge(a *operands, kind string) (mask attention.Mask) {
	switch kind {
	case tokenKind:
		for t := 0; t < a.keys; t += 100 {
			multiply(a.k[t*a.dim:][:a.dim], 10)
			multiply(a.v[t*a.valueDim:][:a.valueDim], 10)
		}
		return mask
	case keyKind:
		multiply(a.k[:a.dim], 1<<16)
	case valueKind:
		multiply(a.v[:a.valueDim], 1<<16)
	default:
		return mask
	}
	// The first query sees what is before it but for the first key.
	mask.Window = &attention.Window{Left: a.keys - a.queries - 1, Right: -1}
	return mask
}

func multiply(x []float32, factor float32) {
	for i := range x {
		x[i] *= factor
	}
}

// scaledBy returns the error of a kind under scales of a granularity.
func (s *study) scaledBy(kind, of string) float64 {
	return s.scales[slices.IndexFunc(s.scales, func(x scaled) bool { return x.kind == kind && x.of == of })].relative
}
