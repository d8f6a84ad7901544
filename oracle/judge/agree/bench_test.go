package agree_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// BenchmarkCheck judges a layer of 4096x4096 and 128 tokens in BF16 that computes what is
// claimed, and one whose claim is another.
func BenchmarkCheck(b *testing.B) {
	const n, k, tokens = 4096, 4096, 128
	r := rand.New(rand.NewPCG(1, 2))
	x, w := make([]float32, tokens*k), make([]float32, n*k)
	for i := range x {
		x[i] = bf16(float32(r.NormFloat64()))
	}
	for i := range w {
		w[i] = bf16(float32(r.NormFloat64()))
	}
	var a, t tensor.Tensor
	a.Shape, t.Shape = []int{tokens, k}, []int{n, k}
	require.NoError(b, scaling.Quantize(b.Context(), &a, x, scaling.Quantizer{Recipe: scaling.DeepGEMM.Recipe(scaling.Input)}))
	require.NoError(b, scaling.Quantize(b.Context(), &t, w, scaling.Quantizer{Recipe: scaling.DeepGEMM.Recipe(scaling.Weight)}))
	out := make([]fp8.BFloat16, tokens*n)
	require.NoError(b, gemm.Multiply(b.Context(), out, &a, &t, gemm.Options{}))
	y := make([]float32, len(out))
	for i, v := range out {
		y[i] = v.Float32()
	}
	weight := agree.Weight{Rows: n, Cols: k, Codes: &t, Values: dequantized(&t), Amax: func() (float32, error) { return 5, nil }}
	l := &agree.Layer{Tokens: tokens, Input: x, InputOf: agree.BF16, Output: y, Of: agree.BF16, Weight: weight}
	for _, claim := range []string{"deepgemm", "deepgemm-ue8m0", "bf16"} {
		b.Run(claim, func(b *testing.B) {
			var c agree.Claim
			for _, r := range recipes() {
				if r.Name == claim {
					c.Recipe = r
				}
			}
			for b.Loop() {
				v, err := agree.Check(b.Context(), l, c, agree.Options{Recipes: recipes()})
				require.NoError(b, err)
				require.Equal(b, claim == "deepgemm", v.Right(), v.Causes())
			}
		})
	}
}
