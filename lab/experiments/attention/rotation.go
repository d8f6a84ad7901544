package attention

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

// The recipes of FlashAttention-3's table, by their places in fa3Recipes.
const (
	tensorScales = iota
	blockScales
	tensorRotated
	blockRotated
)

func fa3Recipes() []recipe {
	return []recipe{
		{name: "tensor scales, P not lifted"},
		{"scales of 128 tokens", blocks(), 8},
		{"tensor scales, rotated", rotated(attention.Recipe{}), 8},
		{"scales of 128 tokens, rotated", rotated(blocks()), 8},
	}
}

// What FlashAttention-3's Table 3 has.
const (
	publishedTensor = 2.4e-2
	publishedFA3    = 9.1e-3
	publishedRatio  = 2.6
)

// rotation is the error of a recipe on operands with outliers.
type rotation struct {
	dim, keys, recipe int
	roots             []float64 // root mean square error of each seed
}

func (r rotation) mean() float64 { return statistics.Mean(r.roots) }

// rotationSizes are heads' dimensions and lengths; the last is compared with the paper.
func (s *study) rotationSizes() [][2]int {
	return lab.Pick(s.o, [][2]int{{64, 2048}, {128, 2048}, {128, 8192}}, [][2]int{{64, 2048}, {128, 2048}, {128, 8192}}, [][2]int{{64, 512}, {128, 1024}})
}

// outliers draws from N(0, 1) + N(0, 100)·Bernoulli(0.001).
func outliers(next *rand.Rand) func() float64 {
	return func() float64 {
		x := next.NormFloat64()
		if next.Float64() < 0.001 {
			x += 10 * next.NormFloat64()
		}
		return x
	}
}

func (s *study) rotationJobs() []job {
	rows := lab.Pick(s.o, 128, 128, 16)
	recipes := fa3Recipes()
	var jobs []job
	for _, size := range s.rotationSizes() {
		dim, keys := size[0], size[1]
		jobs = append(jobs, job{fmt.Sprintf("outliers, %d keys of %d", keys, dim), (1 + len(recipes)) * rows * keys * 2 * dim, func(ctx context.Context) error {
			a := random(rows, keys, dim, dim, outliers(generator(s.o.Seed, forRotations)))
			scale := 1 / math.Sqrt(float64(dim))
			exact := a.exact(scale, attention.Mask{}, s.o.Workers)
			for i, r := range recipes {
				d, err := s.loss(ctx, r, a, scale, attention.Mask{}, exact, s.o.Seed)
				if err != nil {
					return err
				}
				s.rotations = append(s.rotations, rotation{dim: dim, keys: keys, recipe: i, roots: []float64{d.root}})
			}
			return nil
		}})
	}
	return jobs
}

// compared returns the error at the size that is compared with the paper.
func (s *study) compared(recipe int) float64 { return s.comparedSize(recipe).mean() }

func (s *study) comparedSize(recipe int) rotation {
	return s.rotations[len(s.rotations)-len(fa3Recipes())+recipe]
}
