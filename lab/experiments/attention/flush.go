package attention

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/oracle/flash"
)

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
func (s *study) flushOf(factor float64) (of []flush) {
	for _, f := range s.flushes {
		if f.factor == factor {
			of = append(of, f)
		}
	}
	return of
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
