package attention

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/lab"
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
	var jobs []job
	for _, of := range deviations {
		jobs = append(jobs, job{fmt.Sprintf("scores of spread %v", of), rows * keys * 2 * dim * (1 + len(lifts())), func(ctx context.Context) error {
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
		}})
	}
	return jobs
}

// errorsOf returns the errors of a lift, by spread.
func (s *study) errorsOf(l lift) (errors []float64) {
	for _, x := range s.spreads {
		if x.lift == l {
			errors = append(errors, x.relative)
		}
	}
	return errors
}
