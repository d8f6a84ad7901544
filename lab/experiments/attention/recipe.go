package attention

import (
	"context"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// recipe is a way to quantize Q, K and V, and to lift P.
type recipe struct {
	name   string
	of     attention.Recipe
	offset float32
}

// blocks shares scales among 128 tokens of K and V. Of Q there are fewer rows.
func blocks() attention.Recipe {
	return attention.Recipe{K: attention.PerBlock, V: attention.PerBlock, Block: 128}
}

// tokens gives every token a scale.
func tokens() attention.Recipe {
	return attention.Recipe{Q: attention.PerToken, K: attention.PerToken, V: attention.PerToken}
}

// rotated is a recipe with Q and K rotated.
func rotated(r attention.Recipe) attention.Recipe {
	r.Hadamard = true
	return r
}

// problem quantizes operands to E4M3.
func (r recipe) problem(ctx context.Context, a *operands, scale float64, seed uint64, workers int) (*attention.Problem, error) {
	r.of.Profile, r.of.Seed = scaling.TECurrent, seed
	p := &attention.Problem{Scale: float32(scale)}
	sizes := attention.Sizes{Heads: 1, KVHeads: 1, Queries: a.queries, Keys: a.keys, Dim: a.dim, ValueDim: a.valueDim}
	return p, r.of.Quantize(ctx, p, a.q, a.k, a.v, sizes, tensor.Options{Workers: workers})
}

// kernel is exact but for P: what is lost is lost by quantizing.
func (r recipe) kernel() flash.Kernel {
	return flash.Kernel{Tile: 128, Descending: true, Offset: r.offset, P: flash.E4M3}
}

// loss returns how far a recipe's output is from attention of the values themselves.
func (s *study) loss(ctx context.Context, r recipe, a *operands, scale float64, mask attention.Mask, exact []float64, seed uint64) (deviation, error) {
	p, err := r.problem(ctx, a, scale, seed, s.o.Workers)
	if err != nil {
		return deviation{}, err
	}
	p.Mask = mask
	got, err := s.predict(ctx, p, r.kernel())
	if err != nil {
		return deviation{}, err
	}
	return deviationOf(got.Out, exact), nil
}
