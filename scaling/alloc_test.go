//go:build !race

package scaling_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/scaling"
)

// TestQuantizeAllocates checks that a call on a tensor that has its codes allocates
// what chooses delayed scales, and nothing else. The race detector has pools
// lose what they keep.
func TestQuantizeAllocates(t *testing.T) {
	h, err := scaling.NewHistory(delayed(2))
	require.NoError(t, err)
	src := make([]float32, 64)
	for _, c := range []struct {
		most float64 // the function of a delayed recipe
		scaling.Quantizer
	}{
		{0, scaling.Quantizer{Recipe: scaling.Default(scaling.Input)}},
		{0, scaling.Quantizer{Recipe: scaling.NVFP4TE4Over6MSE448.Recipe(scaling.Input)}},
		{0, scaling.Quantizer{Recipe: scaling.NVFP4FourOverSixMAE.Recipe(scaling.Weight)}},
		{1, scaling.Quantizer{Recipe: delayed(2), History: h}},
		{1, scaling.Quantizer{Recipe: delayed(2), History: h, Frozen: true}},
	} {
		q := c.Quantizer
		q.Workers = 1
		x := tensorOf(64)
		quantize := func() {
			if scaling.Quantize(t.Context(), x, src, q) != nil {
				panic("refused")
			}
		}
		quantize()
		require.LessOrEqual(t, testing.AllocsPerRun(10, quantize), c.most, "%v", q.Recipe)
	}
}
