package flash

import (
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle/explain"
)

// entry is a kind of fault, a row of the table: how it is put in words, which problems and
// kernels can have it, with which parameters, and what it changes before the steps of the
// kernel. What it changes in the steps is in faultmodel.go.
type entry struct {
	name, text string
	need       need
	// The fault is tried with each side, number and factor, where there are some, or with
	// what list returns.
	of      []Side
	by      []int
	factors []float64
	list    func(c *change) []Fault

	change func(f Fault, c *change) error
	seen   []string // public issues in which it was seen
}

// need is what a problem and a kernel must have, and why not where they do not. The zero
// need is none.
type need struct {
	why string
	has func(f Fault, c *change) bool
}

// Needs of several kinds.
var (
	tiles  = need{"there is one tile", func(_ Fault, c *change) bool { return c.s.Keys > c.tile() }}
	splits = need{"there is one split", func(_ Fault, c *change) bool { return c.k.splits() > 1 }}
	lift   = need{"P is not lifted", func(_ Fault, c *change) bool { return c.k.Offset != 0 }}
	sinks  = need{"there are no sinks", func(_ Fault, c *change) bool { return c.p.Sinks != nil }}
	window = need{"there is no window", func(_ Fault, c *change) bool { return c.p.Mask.Window != nil }}
)

// Kinds that the steps of a kernel know.
const (
	rescaleDropped    Kind = "rescale-dropped"
	sumRescaleDropped Kind = "sum-rescale-dropped"
	staleMax          Kind = "stale-max"
	tileMax           Kind = "tile-max"
	maskedMax         Kind = "masked-max"
	finiteMax         Kind = "finite-max"
	lastKeysLost      Kind = "last-keys-lost"
	rightOff          Kind = "right-off"
	leftOff           Kind = "left-off"
	topLeft           Kind = "top-left"
	splitMean         Kind = "split-mean"
	splitLost         Kind = "split-lost"
	emptySplit        Kind = "empty-split"
	lseBase2          Kind = "lse-base-2"
	offsetKept        Kind = "offset-kept"
	pScaleKept        Kind = "p-scale-kept"
	unnormalized      Kind = "unnormalized"
	sinkPerSplit      Kind = "sink-per-split"
	sinkInLSE         Kind = "sink-in-lse"
	wrongFormat       Kind = "wrong-format"
	scaleOfOther      Kind = "scale-of-other"
)

// table has a row for each kind, the likelier faults first. It is filled in by init,
// because what fills it refers to it through [Fault.String].
var table *explain.Table[Kind, entry]

func init() {
	unscaled := []Side{ofQ, OfK, OfV}
	anySide := []Side{ofQ, OfK, OfV, OfKV}
	scaledSides := []Side{OfKV, ofQ, OfK, OfV}
	table = explain.NewTable[Kind]("flash", ErrNotHere, []entry{
		{name: "none", text: "nothing is wrong"},

		{name: "rescale-dropped", text: "O is not rescaled when the maximum grows", need: tiles,
			seen: []string{"ROCm/rocm-libraries#7194"}},
		{name: "sum-rescale-dropped", text: "the row sum is not rescaled when the maximum grows",
			need: tiles},
		{name: "stale-max", text: "P is taken against the maximum before its tile", need: tiles,
			seen: []string{"Dao-AILab/flash-attention#2082"}},
		{name: "tile-max", need: tiles,
			text: "P is taken against the maximum of its own tile, not the running one",
			seen: []string{"ROCm/rocm-libraries#7194"}},
		{name: "masked-max", text: "the maximum is left at 0 by a first tile without keys",
			need: need{"no tile is masked", func(f Fault, c *change) bool {
				return tiles.has(f, c) && c.p.Mask != (attention.Mask{})
			}},
			seen: []string{"Dao-AILab/flash-attention#2082", "Dao-AILab/flash-attention#2174"}},
		{name: "finite-max", text: "the maximum begins at a number in place of -Inf",
			need: need{"the maximum begins at a number", func(_ Fault, c *change) bool {
				return c.k.FirstMax == 0
			}},
			factors: []float64{-5e4, 0},
			change:  setKernel(func(f Fault, k *Kernel) { k.FirstMax = firstMax(f.Factor) }),
			seen:    []string{"flashinfer-ai/flashinfer#4267"}},

		{name: "tail-unmasked", text: "the keys that fill the last tile are not masked",
			need: need{"the last tile is full", func(_ Fault, c *change) bool {
				return c.s.Keys%c.tile() != 0
			}},
			change: padTail,
			seen: []string{"flashinfer-ai/flashinfer#5090", "Dao-AILab/flash-attention#1745",
				"Dao-AILab/flash-attention#2374", "vllm-project/vllm#47305"}},
		{name: "last-keys-lost", text: "the last keys are left out",
			need: need{"there are no such keys", func(f Fault, c *change) bool {
				return f.By >= 1 && f.By < c.s.Keys
			}},
			list: func(c *change) []Fault {
				if n := c.s.Keys % c.tile(); n > 1 {
					return []Fault{{By: 1}, {By: n}}
				}
				return []Fault{{By: 1}}
			}},
		{name: "right-off", text: "the mask ends at another key", by: []int{1, -1},
			need: need{"the mask does not end before the last key", func(_ Fault, c *change) bool {
				return c.p.Mask.Causal || c.p.Mask.Window != nil && c.p.Mask.Window.Right >= 0
			}},
			seen: []string{"NVIDIA/cutlass#2336"}},
		{name: "left-off", text: "the window begins at another key", by: []int{1, -1},
			need: need{"there is no window to the left", func(_ Fault, c *change) bool {
				return c.p.Mask.Window != nil && c.p.Mask.Window.Left >= 0
			}}},
		{name: "top-left", text: "the mask is aligned to the first query and key, not the last",
			need: need{"the mask has one alignment", func(_ Fault, c *change) bool {
				return c.p.Mask != (attention.Mask{}) && c.s.Queries != c.s.Keys
			}},
			seen: []string{"Dao-AILab/flash-attention#1778"}},
		{name: "causal-ignored", text: "later keys are not masked",
			need: need{"the mask is not causal", func(_ Fault, c *change) bool {
				return c.p.Mask.Causal
			}},
			change: setProblem(func(p *attention.Problem) { p.Mask.Causal = false })},
		{name: "window-ignored", text: "the window is not applied", need: window,
			change: setProblem(func(p *attention.Problem) { p.Mask.Window = nil })},

		{name: "scale-dropped", text: "scales are not applied", of: unscaled,
			change: changeScales(sameHead, dropScale),
			seen: []string{"vllm-project/vllm#51363", "vllm-project/vllm#42580",
				"flashinfer-ai/flashinfer#1023"}},
		{name: "scale-twice", text: "scales are applied twice", of: unscaled,
			change: changeScales(sameHead, squareScale),
			seen:   []string{"vllm-project/vllm#48016"}},
		{name: "scale-of-head-0", text: "scales of head 0 are read for all heads", of: anySide,
			change: changeScales(func(_, _ int) int { return 0 }, nil),
			seen:   []string{"vllm-project/vllm#53754", "flashinfer-ai/flashinfer#4979"}},
		{name: "scale-of-next", text: "scales of the next head are read", of: anySide,
			change: changeScales(func(h, heads int) int { return (h + 1) % heads }, nil)},
		{name: "scale-exchanged", text: "K is read with the scales of V and V with the scales of K",
			change: exchangeScales,
			seen:   []string{"vllm-project/vllm#37054"}},
		{name: "scale-of-other", list: func(*change) []Fault { return []Fault{{Of: OfV}, {Of: OfK}} },
			text:   "one of K and V is read with the scales of the other",
			change: otherScales,
			seen:   []string{"sgl-project/sglang#26852"}},
		{name: "scale-power-up", text: "scales are rounded up to powers of two", of: scaledSides,
			change: mapScales(number.PowerUp),
			seen:   []string{"deepseek-ai/FlashMLA#184"}},
		{name: "scale-power-down", text: "scales are cut down to powers of two", of: scaledSides,
			change: mapScales(number.PowerDown),
			seen:   []string{"deepseek-ai/FlashMLA#184"}},
		{name: "scale-bfloat16", text: "scales are rounded to bfloat16", of: scaledSides,
			change: mapScales(func(s float32) float32 { return fp8.BFloat16FromFloat32(s).Float32() })},
		{name: "scale-of-token", text: "scales of another token are read", of: anySide, by: []int{1, -1},
			change: otherToken(func(f Fault, t, tokens int) int { return (t + f.By + tokens) % tokens })},
		{name: "scale-of-first-token", text: "scales of the first token are read for all", of: anySide,
			change: otherToken(func(Fault, int, int) int { return 0 })},
		{name: "wrong-format", text: "codes are read in another format", list: otherFormats,
			change: readFormat},
		{name: "softmax-scale-dropped", text: "scores are not scaled",
			need: need{"the softmax's scale is 1", func(_ Fault, c *change) bool {
				return c.p.SoftmaxScale() != 1
			}},
			change: setProblem(func(p *attention.Problem) { p.Scale = 1 })},
		{name: "softmax-scale-of-values",
			text: "scores are scaled by 1/sqrt of V's dimension, not of K's",
			need: need{"K and V have one dimension", func(_ Fault, c *change) bool {
				return c.s.Dim != c.s.ValueDim && c.s.ValueDim != 0
			}},
			change: setProblem(func(p *attention.Problem) {
				p.Scale = float32(1 / math.Sqrt(float64(p.Sizes().ValueDim)))
			})},

		{name: "split-mean", text: "splits are averaged, without their weights", need: splits,
			seen: []string{"flashinfer-ai/flashinfer#50"}},
		{name: "split-lost", text: "a split is left out of the merge",
			need: need{"there is no such split", func(f Fault, c *change) bool {
				return c.k.splits() > 1 && f.By >= 0 && f.By < c.k.splits()
			}},
			list: func(c *change) (all []Fault) {
				for n := range c.k.filledSplits(c.s.Keys) {
					all = append(all, Fault{By: n})
				}
				return all
			}},
		{name: "empty-split", text: "a split without keys counts in the merge", need: splits,
			seen: []string{"Dao-AILab/flash-attention#2842", "FlagOpen/FlagGems#5235"}},
		// In the merge of splits and in what is returned; of one split, or the other way
		// round where natural ones are not wanted.
		{name: "lse-base-2", text: "log-sum-exps in base 2 are taken for natural ones",
			need: need{"log-sum-exps are in base 2", func(_ Fault, c *change) bool {
				return c.k.splits() == 1 || !c.k.Base2
			}},
			change: setKernel(func(_ Fault, k *Kernel) { k.Base2 = k.Base2 != (k.splits() == 1) }),
			seen: []string{"vllm-project/vllm#47079", "vllm-project/vllm#52796",
				"sgl-project/sglang#35045", "sgl-project/sglang#40903"}},
		{name: "lse-reported", text: "log-sum-exps are returned in the other base",
			need:   need{"there is one split: it is the same as lse-base-2", splits.has},
			change: setKernel(func(_ Fault, k *Kernel) { k.Base2 = !k.Base2 })},
		{name: "offset-kept", text: "the lift of P is left in log-sum-exps", need: lift},

		{name: "p-scale-kept", text: "the scale of P is not divided out",
			need: need{"P has no scale", func(_ Fault, c *change) bool { return c.k.pScale() != 1 }},
			seen: []string{"Dao-AILab/flash-attention#2577"}},
		{name: "p-saturated", text: "P exceeds its format and is cut, as rescaling is put off too long",
			need: need{"P cannot saturate", func(_ Fault, c *change) bool {
				return saturating(c.k) > c.k.Threshold
			}},
			change: setKernel(func(_ Fault, k *Kernel) { k.Threshold = saturating(*k) }),
			seen: []string{"Dao-AILab/flash-attention#2577", "Dao-AILab/flash-attention#2694",
				"Dao-AILab/flash-attention#2716"}},
		{name: "p-not-lifted", text: "P is not lifted before its cast and underflows", need: lift,
			change: setKernel(func(_ Fault, k *Kernel) { k.Offset = 0 }),
			seen:   []string{"ROCm/FlyDSL#1020"}},
		{name: "unnormalized", text: "the output is not divided by the row sum"},

		{name: "head-modulo", text: "query heads use head h mod KVHeads of K and V",
			need: need{"heads are not grouped", func(_ Fault, c *change) bool {
				return c.s.KVHeads != 1 && c.s.KVHeads != c.s.Heads
			}},
			change: headModulo,
			seen:   []string{"PSAL-POSTECH/ONNXim#34", "ekzhang/jax-js#180"}},
		{name: "sink-omitted", text: "the sink is left out", need: sinks,
			change: setProblem(func(p *attention.Problem) { p.Sinks = nil }),
			seen:   []string{"modular/modular#6198"}},
		{name: "sink-per-split", text: "the sink is counted once for every split",
			need: need{"there are no sinks or splits", func(f Fault, c *change) bool {
				return sinks.has(f, c) && splits.has(f, c)
			}},
			seen: []string{"ROCm/rocm-libraries#12227"}},
		{name: "sink-in-lse", text: "log-sum-exps count the sink", need: sinks},
		{name: "sink-scaled", text: "the sink is scaled as a score", need: sinks,
			change: setProblem(func(p *attention.Problem) { scaleSinks(p, p.SoftmaxScale()) })},
		{name: "sink-base-2", text: "the sink is taken for a score in base 2", need: sinks,
			change: setProblem(func(p *attention.Problem) { scaleSinks(p, ln2) })},

		{name: "keys-swapped", text: "V's keys are read in reverse in groups", by: []int{2, 4, 8, 16},
			need: need{"there are no groups of keys", func(f Fault, c *change) bool {
				return f.By >= 2 && c.s.Keys >= 2
			}},
			change: permuteKeys(func(at, size, _ int) int { return size - 1 - at })},
		// As registers of an accumulator lie that are not permuted.
		{name: "keys-interleaved", text: "V's keys are read as two halves by turns",
			by: []int{4, 8, 16, 32},
			need: need{"there are no groups of keys", func(f Fault, c *change) bool {
				return f.By >= 4 && f.By%2 == 0 && c.s.Keys >= 4
			}},
			change: permuteKeys(func(at, size, whole int) int {
				if size < whole {
					return at
				}
				return at/2 + at%2*(size/2)
			})},
		{name: "columns-swapped", text: "columns of the output are in reverse in groups",
			by: []int{2, 4, 8, 16},
			need: need{"there are no groups of columns", func(f Fault, c *change) bool {
				return f.By >= 2 && c.s.ValueDim >= 2
			}},
			change: func(f Fault, c *change) error {
				c.p.V = swapColumns(c.p.V, f.By)
				return nil
			}},
	}, func(e entry) string { return e.name })
}

// faults returns the fault with all parameters that are worth trying.
func (e *entry) faults(c *change) []Fault {
	if e.list != nil {
		return e.list(c)
	}
	all := explain.With([]Fault{{}}, e.of, func(f *Fault, s Side) { f.Of = s })
	all = explain.With(all, e.by, func(f *Fault, by int) { f.By = by })
	return explain.With(all, e.factors, func(f *Fault, x float64) { f.Factor = x })
}
