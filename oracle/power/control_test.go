package power

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestControls demands that controls are products with bias and old C, within the bound.
func TestControls(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 0))
	a, b := normalPair(9, 11, 200, tensor.Block{Rows: 1, Cols: 32}, 5, 6)
	bias, old, exact := make([]float32, 11), make([]float32, 99), make([]float32, 99)
	for j := range bias {
		bias[j] = float32(100 * r.NormFloat64())
	}
	for i := range old {
		old[i] = float32(100 * r.NormFloat64())
	}
	copy(exact, old)
	options := oracle.Options{Bias: bias, Accumulate: true}
	require.NoError(t, oracle.Exact(t.Context(), exact, a, b, options))
	for _, dequantized := range []bool{false, true} {
		o := Options{Rate: Rate, Bias: bias, Accumulation: oracle.Accumulation{Dequantized: dequantized}}
		p, err := newPopulation(t.Context(), old, a, b, &o)
		require.NoError(t, err)
		bound := make([]float64, 99)
		require.NoError(t, oracle.Bound(t.Context(), bound, old, a, b, o.Accumulation, options))
		for i, control := range controls[float32](dequantized) {
			c, err := control(t.Context(), p, old, &o)
			require.NoError(t, err)
			if dequantized && i == 0 {
				continue // octavo's scales sums
			}
			for at, x := range c {
				require.InDelta(t, exact[at], x, bound[at], "control %d, element %d", i, at)
			}
		}
	}
}
