package flash

import (
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// bell is codes of normal numbers under one scale for each head.
func bell(r *rand.Rand, heads, tokens, dim int) attention.Operand {
	x := &tensor.Tensor{Format: fp8.E4M3, Shape: []int{heads, tokens, dim},
		Block: tensor.Block{Rows: tokens}}
	for range heads * tokens * dim {
		x.Codes = append(x.Codes, fp8.EncodeOne(r.NormFloat64(), x.Format, fp8.Policy{}))
	}
	for range heads {
		x.Scales = append(x.Scales, 1)
	}
	return attention.Operand{Codes: x}
}

func bellProblem(queries, keys, dim int) *attention.Problem {
	r := rand.New(rand.NewPCG(3, 4))
	return &attention.Problem{Q: bell(r, 1, queries, dim), K: bell(r, 1, keys, dim),
		V: bell(r, 1, keys, dim)}
}

func BenchmarkExact(b *testing.B) {
	p := bellProblem(16, 8192, 128)
	b.Run("float32", func(b *testing.B) {
		for b.Loop() {
			if _, err := Exact[float32](b.Context(), p, Options{Workers: 1}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("float64", func(b *testing.B) {
		for b.Loop() {
			if _, err := Exact[float64](b.Context(), p, Options{Workers: 1}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
