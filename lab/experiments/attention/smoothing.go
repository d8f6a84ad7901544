package attention

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/lab"
)

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
	var jobs []job
	for _, bias := range biases {
		jobs = append(jobs, job{fmt.Sprintf("K with a bias of %v", bias), 4 * rows * keys * 2 * dim, func(ctx context.Context) error {
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
		}})
	}
	return jobs
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
func (s *study) smoothedAt(bias float64) smoothed {
	for _, x := range s.smoothing {
		if x.bias == bias {
			return x
		}
	}
	return smoothed{bias, math.NaN(), math.NaN(), math.NaN()}
}
