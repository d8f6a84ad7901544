package sensitivity

import (
	"math"

	"github.com/octavo-fp8/octavo/lab/statistics"
)

// results are what came of all seeds. Figures are lists of a value of each seed, in percent.
type results struct {
	study  study
	params []string
	seeds  []found
}

// of returns a figure of each seed.
func (r *results) of(figure func(found) float64) []float64 { return statistics.Each(r.seeds, figure) }

// gap is by how much the held-out loss of an arm is above that of FP32.
func (r *results) gap(arm int) []float64 {
	return r.of(func(f found) float64 { return 100 * (f.arms[arm].after/f.arms[fp32Arm].after - 1) })
}

// gapBefore is gap before the arm has trained: what its forward pass alone costs.
func (r *results) gapBefore(arm int) []float64 {
	return r.of(func(f found) float64 { return 100 * (f.arms[arm].before/f.arms[fp32Arm].before - 1) })
}

// gradient is a figure of the gradients of an arm, the median of all parameters: the gradient
// of one or two may nearly vanish, and its error then says nothing of the others.
func (r *results) gradient(arm int, figure func(gradientError) float64) []float64 {
	return r.of(func(f found) float64 {
		var all []float64
		for _, e := range f.arms[arm].gradients {
			all = append(all, 100*figure(e))
		}
		return statistics.Median(all)
	})
}

// relativeOf is the relative error of an arm's gradients.
func (r *results) relativeOf(arm int) []float64 { return r.gradient(arm, gradientError.relative) }

// times is by how many powers of two the relative error of the first arm is that of the
// second, seed by seed.
func (r *results) times(first, second int) (logarithms []float64) {
	a, b := r.relativeOf(first), r.relativeOf(second)
	for i := range a {
		logarithms = append(logarithms, math.Log2(a[i]/b[i]))
	}
	return logarithms
}

// gapAbove is the gap of the first arm less that of the second, seed by seed.
func (r *results) gapAbove(first, second int) []float64 {
	return statistics.Differences(r.gap(first), r.gap(second))
}
