package attention

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/tensor"
)

// operands are Q, [queries, dim], K, [keys, dim], and V, [keys, valueDim], of one head.
type operands struct {
	queries, keys, dim, valueDim int
	q, k, v                      []float32
}

// random draws operands whose values are next's.
func random(queries, keys, dim, valueDim int, next func() float64) *operands {
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(next())
		}
		return x
	}
	return &operands{queries, keys, dim, valueDim, draw(queries * dim), draw(keys * dim), draw(keys * valueDim)}
}

// generator returns the random numbers of a seed and of what they are for.
func generator(seed, purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, purpose)) }

// What random numbers are for.
const (
	forSpreads = 100 + iota
	forFlushes
	forGrowths
	forRotations
	forSmoothing
	forScales
)

// round makes values those of E4M3, and returns their codes under the scale 1.
func round(values []float32, tokens int) attention.Operand {
	t := &tensor.Tensor{Shape: []int{1, tokens, len(values) / tokens}, Codes: make([]byte, len(values)), Scales: []float32{1}}
	fp8.Encode(t.Codes, values, t.Format, fp8.Policy{}, nil)
	fp8.Decode(values, t.Codes, t.Format)
	return attention.Operand{Codes: t}
}

// rounded makes the operands those of E4M3, and returns their problem.
func (a *operands) rounded(scale float64) *attention.Problem {
	return &attention.Problem{Q: round(a.q, a.queries), K: round(a.k, a.keys), V: round(a.v, a.keys), Scale: float32(scale)}
}

// exact returns attention in float64.
func (a *operands) exact(scale float64, mask attention.Mask, workers int) []float64 {
	out := make([]float64, a.queries*a.valueDim)
	parallel.For(a.queries, 1, parallel.Workers(workers), func(from, to int) {
		weights := make([]float64, a.keys)
		for i := from; i < to; i++ {
			lo, hi := mask.Range(i, a.queries, a.keys)
			a.exactRow(out[i*a.valueDim:][:a.valueDim], a.q[i*a.dim:][:a.dim], scale, lo, hi, weights)
		}
	})
	return out
}

func (a *operands) exactRow(out []float64, q []float32, scale float64, lo, hi int, weights []float64) {
	largest := math.Inf(-1)
	for j := lo; j < hi; j++ {
		k := a.k[j*a.dim:][:len(q)]
		var sum float64
		for d, x := range q {
			sum += float64(x) * float64(k[d])
		}
		weights[j] = scale * sum
		largest = max(largest, weights[j])
	}
	var all float64
	for j := lo; j < hi; j++ {
		w := math.Exp(weights[j] - largest)
		all += w
		for d, v := range a.v[j*a.valueDim:][:a.valueDim] {
			out[d] += w * float64(v)
		}
	}
	for d := range out {
		out[d] /= all
	}
}

// predict returns what a kernel returns.
func (s *study) predict(ctx context.Context, p *attention.Problem, k flash.Kernel) (*flash.Prediction, error) {
	return flash.Predict(ctx, p, k, flash.Options{Workers: s.o.Workers})
}

// deviation is how far results are from the exact ones.
type deviation struct {
	relative float64 // root of the sum of squared errors over that of squares
	root     float64 // root mean square of errors
	bias     float64 // sum of errors over sum of magnitudes; above 0 where results are too large
}

func deviationOf(got []float32, exact []float64) deviation {
	var errors, squares, sum, magnitudes float64
	for i, want := range exact {
		e := float64(got[i]) - want
		errors += e * e
		squares += want * want
		sum += math.Copysign(1, want) * e
		magnitudes += math.Abs(want)
	}
	return deviation{math.Sqrt(errors / squares), math.Sqrt(errors / float64(len(exact))), sum / magnitudes}
}
