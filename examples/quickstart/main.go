// Quickstart quantizes two matrices to FP8 as DeepSeek-V3 does, multiplies them, and
// says how far the product is from that of the float32 values, and what was lost in
// quantizing. README.md shows the function linear.
package main

import (
	"context"
	"fmt"
	"log"
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

const tokens, in, out = 16, 512, 256

func main() {
	r := rand.New(rand.NewPCG(1, 2))
	activations, weights, bias := normal(r, tokens*in), normal(r, out*in), normal(r, out)

	var stats fp8.Stats
	y, err := linear(context.Background(), activations, weights, bias, &stats)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("relative error of the product: %.4f\n", distance(y, product(activations, weights, bias)))
	fmt.Printf("activations: amax %g, saturated %d, flushed to zero %d of %d\n",
		stats.Amax, stats.Saturated(), stats.Flushed, stats.Elements)
}

// linear returns activations·weightsᵀ + bias, computed in FP8. Stats says what quantizing
// the activations lost.
func linear(ctx context.Context, activations, weights, bias []float32, stats *fp8.Stats) ([]float32, error) {
	x := &tensor.Tensor{Name: "x", Shape: []int{tokens, in}}
	w := &tensor.Tensor{Name: "w", Shape: []int{out, in}}
	q := scaling.Quantizer{
		Recipe:  scaling.DeepSeek.Recipe(scaling.Input), // 1x128
		Options: tensor.Options{Stats: stats},
	}
	if err := scaling.Quantize(ctx, x, activations, q); err != nil {
		return nil, err
	}
	q = scaling.Quantizer{Recipe: scaling.DeepSeek.Recipe(scaling.Weight)} // 128x128
	if err := scaling.Quantize(ctx, w, weights, q); err != nil {
		return nil, err
	}
	y := make([]float32, tokens*out)
	err := gemm.Multiply(ctx, y, x, w, gemm.Options{Bias: bias})
	return y, err
}

// product is what linear computes, in float64.
func product(activations, weights, bias []float32) []float64 {
	y := make([]float64, 0, tokens*out)
	for t := range tokens {
		for o := range out {
			sum := float64(bias[o])
			for k := range in {
				sum += float64(activations[t*in+k]) * float64(weights[o*in+k])
			}
			y = append(y, sum)
		}
	}
	return y
}

// distance returns the Euclidean norm of got - want relative to that of want.
func distance(got []float32, want []float64) float64 {
	var difference, norm float64
	for i, w := range want {
		d := float64(got[i]) - w
		difference += d * d
		norm += w * w
	}
	return math.Sqrt(difference / norm)
}

func normal(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}
