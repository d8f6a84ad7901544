//go:build !race

package gemm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

func init() { levelTests["NoAllocation"] = TestNoAllocation }

// TestNoAllocation checks that a product allocates nothing once warm. The race
// detector has pools lose what they keep.
func TestNoAllocation(t *testing.T) {
	forLevels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 8))
		for _, m := range []int{1, 4, 40} {
			a := random(r, "a", fp8.E4M3, tile128, kind{}, m, 100)
			b := random(r, "b", fp8.E4M3, square128, kind{}, 100, 100)
			w, err := gemm.Pack(b)
			require.NoError(t, err)
			o := gemm.Options{Workers: 2, Bias: make([]float32, 100)}
			x, q := &tensor.Tensor{Name: "x"}, scaling.Quantizer{Recipe: scaling.Default(scaling.Input)}
			single, half, brain := make([]float32, m*100), make([]float16.Float16, m*100), make([]fp8.BFloat16, m*100)
			require.Zero(t, testing.AllocsPerRun(10, func() {
				_ = gemm.Multiply(t.Context(), single, a, b, o)
				_ = gemm.Multiply(t.Context(), half, a, b, o)
				_ = gemm.Multiply(t.Context(), brain, a, w, o)
				_ = gemm.MultiplyAndQuantize(t.Context(), brain, x, a, w, o, q)
			}))
		}
	})
}

// TestNoAllocationNarrow is the same for integer units, nibbles and outer scales.
func TestNoAllocationNarrow(t *testing.T) {
	forLevels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 9))
		for _, m := range []int{1, 40} {
			a := random(r, "a", fp8.E2M1, tensor.Block{Rows: 1, Cols: 16}, kind{encoded: true, outer: true}, m, 100)
			b := random(r, "b", fp8.E2M1, tensor.Block{Rows: 1, Cols: 16}, kind{encoded: true, outer: true}, 100, 100)
			x := random(r, "x", fp8.E4M3, tile128, kind{}, m, 100)
			w, err := gemm.Pack(b)
			require.NoError(t, err)
			c := make([]float32, m*100)
			require.Zero(t, testing.AllocsPerRun(10, func() {
				_ = gemm.Multiply(t.Context(), c, a, b, gemm.Options{Workers: 2})
				_ = gemm.Multiply(t.Context(), c, a, w, gemm.Options{Workers: 2})
				_ = gemm.Multiply(t.Context(), c, x, w, gemm.Options{Workers: 2})
			}))
		}
	})
}
