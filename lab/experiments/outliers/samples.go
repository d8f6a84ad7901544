package outliers

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/statistics"
)

// samples returns one value of each seed.
func (s *study) samples(figure func(seedFigures) float64) []float64 {
	return statistics.Each(s.seeds, figure)
}

// last are the figures of all layers at the last look.
func last(all []alignment, layers int) []alignment { return all[len(all)-layers:] }

// meanOf is the mean over layers.
func meanOf(all []alignment, figure func(alignment) float64) (mean float64) {
	for _, a := range all {
		mean += figure(a) / float64(len(all))
	}
	return mean
}

// atEnd is a figure at the end of training, the mean over layers.
func (s *study) atEnd(of func(seedFigures) []alignment, figure func(alignment) float64) []float64 {
	return s.samples(func(f seedFigures) float64 { return meanOf(last(of(f), s.plan.layers), figure) })
}

// byDecay is by how much a figure at the end of training is larger with weight decay.
func (s *study) byDecay(figure func(alignment) float64) []float64 {
	return statistics.Differences(s.atEnd(decayedOf, figure), s.atEnd(freeOf, figure))
}

// growth is the logarithm to base 2 of the largest |z| of the late window over the largest
// of what a late scale has seen, of the layer where that is most.
func (s *study) growth(of func(seedFigures) course) []float64 {
	return s.samples(func(f seedFigures) float64 {
		amax := of(f).amax
		most := math.Inf(-1)
		for layer := range s.plan.layers {
			most = max(most, math.Log2(largestOf(amax[s.plan.window:], layer)/largestOf(amax[max(0, s.plan.window-history):s.plan.window], layer)))
		}
		return most
	})
}

func largestOf(amax [][]float64, layer int) (largest float64) {
	for _, step := range amax {
		largest = max(largest, step[layer])
	}
	return largest
}

// error is the error of the down projection's output under an arm: the root mean square
// over the steps that are looked at and over layers.
func (c course) error(name string) float64 {
	i := armIndex(name)
	var squares float64
	for _, step := range c.arms {
		squares += step[i].output * step[i].output / float64(len(c.arms))
	}
	return math.Sqrt(squares)
}

// mean is that of a figure of an arm over the steps that are looked at.
func (c course) mean(name string, figure func(fidelity) float64) (mean float64) {
	i := armIndex(name)
	for _, step := range c.arms {
		mean += figure(step[i]) / float64(len(c.arms))
	}
	return mean
}

// ratio is the logarithm to base 2 of an arm's error over that of another on the same
// tensors.
func (s *study) ratio(of func(seedFigures) course, a, b string) []float64 {
	return s.samples(func(f seedFigures) float64 { return math.Log2(of(f).error(a) / of(f).error(b)) })
}

// gap is by how many percent the held-out loss of weights is higher if inputs are quantized
// under an arm: of the mean of the steps that are looked at.
func (f seedFigures) gap(name string) float64 {
	return percentAbove(f.growing.under[lossIndex(name)], f.growing.heldOut)
}

// trainedGap is by how many percent the held-out loss of a run is above that of FP32.
func (f seedFigures) trainedGap(name string) float64 {
	i := slices.IndexFunc(f.runs, func(c course) bool { return c.name == name })
	return percentAbove(f.runs[i].heldOut, f.growing.heldOut)
}

func percentAbove(losses, others []float64) float64 {
	return 100 * (statistics.Mean(losses)/statistics.Mean(others) - 1)
}

// lossIndex returns the place of an arm among those of which the loss is taken.
func lossIndex(name string) int {
	return slices.IndexFunc(lossArms(), func(a arm) bool { return a.name == name })
}

func lossArms() []arm { return slices.DeleteFunc(arms(), func(a arm) bool { return !a.loss }) }

func (s *study) gaps(name string) []float64 {
	return s.samples(func(f seedFigures) float64 { return f.gap(name) })
}

func (s *study) trainedGaps(name string) []float64 {
	return s.samples(func(f seedFigures) float64 { return f.trainedGap(name) })
}

func growingOf(f seedFigures) course      { return f.growing }
func calmOf(f seedFigures) course         { return f.calm }
func decayedOf(f seedFigures) []alignment { return f.decayed }
func freeOf(f seedFigures) []alignment    { return f.free }
