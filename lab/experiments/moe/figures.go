package moe

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/lab/training"
)

// results are what came of all seeds. Figures are lists of a value of each seed.
type results struct {
	study study
	seeds []found
}

// of returns a figure of each seed.
func (r *results) of(figure func(found) float64) []float64 { return statistics.Each(r.seeds, figure) }

// overMixtures returns the mean of a figure over the layers with experts.
func (r *results) overMixtures(figure func(mixture int) float64) float64 {
	var sum float64
	n := r.study.mixtures()
	for m := range n {
		sum += figure(m)
	}
	return sum / float64(n)
}

func (r *results) heldOut(arm int) []float64 {
	return r.of(func(f found) float64 { return f.arms[arm].heldOut })
}

// trained is the mean training loss of an arm in the last two thirds of the steps.
func (r *results) trained(arm int) []float64 {
	return r.of(func(f found) float64 {
		var judged []float64
		for _, loss := range f.arms[arm].losses[r.study.steps/3:] {
			judged = append(judged, training.AtMostUniform(loss, r.study.config().Vocab))
		}
		return statistics.Mean(judged)
	})
}

// gap is by how many percent that is above BF16's.
func (r *results) gap(arm int) []float64 {
	return statistics.PercentAbove(r.trained(arm), r.trained(bf16Arm))
}

// variation is the coefficient of variation of loads: their standard deviation over their
// mean, 0 where all experts have as many tokens.
func variation(load []int) float64 {
	var sum, squares float64
	for _, n := range load {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	mean := sum / float64(len(load))
	return math.Sqrt(max(squares/float64(len(load))-float64(mean*mean), 0)) / mean
}

// excess is by which share of the mean load the largest is above it.
func excess(load []int) float64 {
	sum := 0
	for _, n := range load {
		sum += n
	}
	return float64(slices.Max(load)*len(load))/float64(sum) - 1
}

// byStep is a figure of the loads of a step, the mean of the last third of the steps and of
// layers.
func (r *results) byStep(arm int, figure func(load []int) float64) []float64 {
	return r.of(func(f found) float64 {
		late := f.arms[arm].loads[r.study.late():]
		return r.overMixtures(func(m int) (mean float64) {
			for _, loads := range late {
				mean += figure(loads[m]) / float64(len(late))
			}
			return mean
		})
	})
}

// lasting is a figure of the loads of the last third of the steps together, the mean of
// layers: what is uneven in a step only has no part in it.
func (r *results) lasting(arm int, figure func(load []int) float64) []float64 {
	return r.of(func(f found) float64 {
		return r.overMixtures(func(m int) float64 { return figure(r.lateLoad(f.arms[arm], m)) })
	})
}

// lateLoad returns the tokens of each expert in the last third of the steps.
func (r *results) lateLoad(a result, mixture int) []int {
	all := make([]int, r.study.experts())
	for _, loads := range a.loads[r.study.late():] {
		for e, n := range loads[mixture] {
			all[e] += n
		}
	}
	return all
}

// changed is the percentage of choices that a compared arm makes and FP32 does not, in a
// layer.
func (r *results) changed(arm, mixture int) []float64 {
	return r.of(func(f found) float64 {
		c := f.compared[arm]
		return 100 * float64(c.changed[mixture]) / float64(c.choices)
	})
}

// changes is the mean of changed over layers.
func (r *results) changes(arm int) []float64 {
	return r.of(func(f found) float64 {
		c := f.compared[arm]
		return r.overMixtures(func(m int) float64 {
			return 100 * float64(c.changed[m]) / float64(c.choices)
		})
	})
}

// gradient is the relative error of a compared arm's gradients against FP32's in percent, the
// median over the weights of some parts: the gradient of one may nearly vanish. It is NaN where
// none of them has a gradient.
func (r *results) gradient(arm int, of ...string) []float64 {
	return r.of(func(f found) float64 {
		var all []float64
		for _, e := range f.compared[arm].gradients {
			if relative := e.relative(); slices.Contains(of, partOf(e.weight)) && !math.IsNaN(relative) {
				all = append(all, 100*relative)
			}
		}
		if len(all) == 0 {
			return math.NaN()
		}
		return statistics.Median(all)
	})
}

// products are the parts whose products are those of the recipe.
var products = parts[:len(parts)-1]

// above is by how many percent the gradient error of a compared arm is above another's.
func (r *results) above(arm, other int) []float64 {
	return statistics.PercentAbove(r.gradient(arm, products...), r.gradient(other, products...))
}

// lateHeard returns what was heard of an arm in the last third of the steps.
func (r *results) lateHeard(a result) (all []heard) {
	for _, h := range a.heard {
		if h.step >= r.study.late() {
			all = append(all, h)
		}
	}
	return all
}

// amaxes returns the largest amax of an operand of each expert of a layer in the last third
// of the steps.
func (r *results) amaxes(a result, operand, mixture int) []float64 {
	all := make([]float64, r.study.experts())
	for _, h := range r.lateHeard(a) {
		if h.operand == operand && h.mixture == mixture && h.expert < len(all) {
			all[h.expert] = max(all[h.expert], h.amax)
		}
	}
	return all
}

// spread is by how many powers of two the largest amax of an operand of FP8's experts is
// above the least, the mean of layers.
func (r *results) spread(operand int) []float64 {
	return r.of(func(f found) float64 {
		return r.overMixtures(func(m int) float64 {
			all := r.amaxes(f.arms[fp8Arm], operand, m)
			return math.Log2(slices.Max(all) / slices.Min(all))
		})
	})
}

// saturated is how many of a million values of an arm's experts saturated in the last third
// of the steps: of those to choose from, or of the shared one, which all tokens go to.
func (r *results) saturated(arm int, shared bool) []float64 {
	return r.of(func(f found) float64 {
		var saturated, elements int64
		for _, h := range r.lateHeard(f.arms[arm]) {
			if shared == (h.expert == r.study.experts()) {
				saturated += h.saturated
				elements += h.elements
			}
		}
		return 1e6 * float64(saturated) / float64(elements)
	})
}

// roundingOf adds up what was lost of an operand of all layers.
func (r *results) roundingOf(f found, operand int, of func(roundings) rounding) (all rounding) {
	for _, x := range f.rounded {
		if x.operand == operand {
			all.add(of(x))
		}
	}
	return all
}

func ofAll(way int) func(roundings) rounding {
	return func(x roundings) rounding { return x.all[way] }
}

func ofLeast(way int) func(roundings) rounding {
	return func(x roundings) rounding { return x.least[way] }
}

// flushed is how many of a thousand values that are not 0 of an operand become 0.
func (r *results) flushed(operand int, of func(roundings) rounding) []float64 {
	return r.of(func(f found) float64 {
		lost := r.roundingOf(f, operand, of)
		return 1e3 * float64(lost.flushed) / float64(lost.nonzero)
	})
}

// off is the relative error of an operand in percent.
func (r *results) off(operand int, of func(roundings) rounding) []float64 {
	return r.of(func(f found) float64 {
		lost := r.roundingOf(f, operand, of)
		return 100 * math.Sqrt(lost.off/lost.squares)
	})
}

// flushedMore is by which factor one scale for all experts flushes more of an operand than a
// scale for each does.
func (r *results) flushedMore(operand int) []float64 {
	return statistics.Ratios(r.flushed(operand, ofAll(oneScale)), r.flushed(operand, ofAll(scaleEach)))
}

// judged are the values of each hypothesis and control, one of each seed.
func (r *results) judged() map[string][]float64 {
	return map[string][]float64{
		"loss-fp8":         r.gap(fp8Arm),
		"loss-deepseek-v3": r.gap(deepSeekArm),
		"loss-mxfp8":       r.gap(mxfp8Arm),
		"loss-lower-rate":  r.gap(slowerArm),

		"load-no-biases": statistics.PercentAbove(
			r.byStep(unbalancedArm, variation), r.byStep(bf16Arm, variation)),
		"balanced": statistics.Ratios(r.lasting(bf16Arm, variation), r.lasting(unbalancedArm, variation)),
		"load-fp8": statistics.PercentAbove(r.byStep(fp8Arm, variation), r.byStep(bf16Arm, variation)),

		"choices-fp8":         r.changes(fp8There),
		"choices-deepseek-v3": r.changes(deepSeekThere),
		"choices-mxfp8":       r.changes(mxfp8There),
		"choices-router-e2m1": r.changes(routerE2M1There),

		"error-deepseek-v3":     r.above(deepSeekThere, fp8There),
		"error-mxfp8":           r.above(mxfp8There, fp8There),
		"error-e5m2":            r.above(e5m2There, fp8There),
		"error-gradient-blocks": r.above(blocksThere, fp8There),

		"amax-spread":    r.spread(inputOfDown),
		"shared-scale":   r.flushedMore(inputOfDown),
		"late-saturated": statistics.Differences(r.saturated(delayedArm, false), r.saturated(delayedArm, true)),
	}
}
