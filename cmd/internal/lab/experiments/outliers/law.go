package outliers

import (
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/lab/statistics"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/swiglu"
)

// naturalFigures are those of a layer that was trained as usual.
type naturalFigures struct {
	step  int
	layer int

	cosine    float64 // median |cosine| of the branches of all neurons
	cosineTop float64 // of the twentieth with the largest gain
	amax      float64 // largest |z|
	median    float64 // median |z|
}

// cosineAtRandom is about the median |cosine| of random directions: a normal variable
// of deviation 1/√dim, whose median magnitude is 0.6745 of that.
func cosineAtRandom(dim int) float64 { return 0.6745 / math.Sqrt(float64(dim)) }

func naturalOf(m *nn.Llama, step int, layers []branches) (all []naturalFigures) {
	for layer, b := range layers {
		w := mlpOf(m, layer)
		byGain := make([]int, b.channels)
		for i := range byGain {
			byGain[i] = i
		}
		slices.SortStableFunc(byGain, func(i, j int) int {
			if w.gain(i) > w.gain(j) {
				return -1
			}
			return 1
		})
		cosines := make([]float64, b.channels)
		for i, neuron := range byGain {
			cosines[i] = math.Abs(w.cosine(neuron))
		}
		z := b.plain()
		all = append(all, naturalFigures{
			step: step, layer: layer,
			cosineTop: statistics.Median(slices.Clone(cosines[:(b.channels+19)/20])),
			cosine:    statistics.Median(cosines),
			amax:      largestMagnitude(z),
			median:    statistics.Median(magnitudes(z)),
		})
	}
	return all
}

// smoothings are the ways of Smooth-SwiGLU; the first is plain SwiGLU.
var smoothings = []struct {
	name string
	way  *swiglu.Smoothing
}{
	{"plain", nil},
	{"per channel", &swiglu.Smoothing{Axis: swiglu.PerChannel}},
	{"per token", &swiglu.Smoothing{Axis: swiglu.PerToken}},
}

// scalesOf returns the scales that a way of smoothing chooses for b.
func scalesOf(b branches, way *swiglu.Smoothing) swiglu.Scales {
	if way == nil {
		return swiglu.Scales{}
	}
	s := swiglu.Smoother{Smoothing: *way}
	return s.Scales(b.up, b.channels)
}

// gainFigures are the largest |z| of the outlier neurons at a gain, in the order of
// smoothings.
type gainFigures struct {
	gain float64
	amax []float64
}

// measureLaw multiplies the gain and looks at what goes into the down projections.
func (s *study) measureLaw(ctx context.Context) error {
	m, err := nn.NewLlama(s.base.Model.Config(), 0)
	if err != nil {
		return err
	}
	for gain := 1.0; gain <= 64; gain *= 2 {
		s.grown(m, gain)
		layers, err := branchesOf(ctx, m, s.probe, s.setup.Batch, s.setup.Seq)
		if err != nil {
			return err
		}
		f := gainFigures{gain: gain}
		for _, how := range smoothings {
			var amax float64
			for _, some := range s.outlier.largest(layers, how.way) {
				amax = max(amax, slices.Max(some))
			}
			f.amax = append(f.amax, amax)
		}
		s.law = append(s.law, f)
	}
	return nil
}

// slope returns the power of the gain that the largest |z| grows with: that of the
// line of least squares through the logarithms, from a gain of 4 on, where gates are
// far from 0.
func slope(law []gainFigures, smoothing int) float64 {
	var n, x, y, xx, xy float64
	for _, f := range law {
		if f.gain < 4 {
			continue
		}
		a, b := math.Log2(f.gain), math.Log2(f.amax[smoothing])
		n, x, y, xx, xy = n+1, x+a, y+b, xx+float64(a*a), xy+float64(a*b)
	}
	return (float64(n*xy) - float64(x*y)) / (float64(n*xx) - float64(x*x))
}
