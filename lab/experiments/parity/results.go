package parity

import "github.com/octavo-fp8/octavo/lab/statistics"

// results are what came of all seeds. Figures are lists of a value of each seed, in percent.
type results struct {
	study   study
	weights []string
	seeds   []found
	real    widths // of activations of a real model; nil: none were given
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

// overWeights returns 100 times the mean of a figure over the weights.
func (r *results) overWeights(of map[string]layerError, figure func(layerError) float64) float64 {
	var sum float64
	for _, w := range r.weights {
		sum += figure(of[w])
	}
	return 100 * sum / float64(len(r.weights))
}

// gradient returns a figure of the gradients of an arm that is not FP32, mean over weights,
// at the weights where arms part.
func (r *results) gradient(arm int, figure func(layerError) float64) []float64 {
	return r.of(func(f found) float64 { return r.overWeights(f.fixed[arm-1], figure) })
}

// walked is gradient along the steps in FP32.
func (r *results) walked(arm int, figure func(layerError) float64) []float64 {
	return r.of(func(f found) float64 { return r.overWeights(f.walk[arm-1], figure) })
}

// added is a figure of a way to add, mean over the products of a pass.
func (r *results) added(way int, figure func(additionError) float64) []float64 {
	return r.of(func(f found) float64 {
		var sum float64
		for _, product := range f.added {
			sum += figure(product[way])
		}
		return 100 * sum / float64(len(f.added))
	})
}

// Figures of gradients.
func relative(e layerError) float64   { return e.relative }
func projection(e layerError) float64 { return e.projection }
func summed(e layerError) float64     { return e.sum }
func distance(e layerError) float64   { return 1 - e.cosine }
func persistent(e layerError) float64 { return e.persistent }
func fallen(e layerError) float64     { return e.fall }

// Figures of ways to add.
func addedError(e additionError) float64 { return e.relative }
func addedBias(e additionError) float64  { return e.projection }

// meanOver returns the figure of the mean error over n batches.
func meanOver(n int) func(layerError) float64 {
	return func(e layerError) float64 { return e.mean[n-1] }
}
