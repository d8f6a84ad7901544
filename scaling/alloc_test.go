//go:build !race

package scaling_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/scaling"
)

// TestQuantizeAllocates checks that a call on a tensor that has its codes allocates
// the functions that choose the scales, and nothing else. The race detector has pools
// lose what they keep.
func TestQuantizeAllocates(t *testing.T) {
	h, err := scaling.NewHistory(delayed(2))
	require.NoError(t, err)
	src := make([]float32, 64)
	for _, q := range []scaling.Quantizer{
		{Recipe: scaling.Default(scaling.Input)},
		{Recipe: delayed(2), History: h},
		{Recipe: delayed(2), History: h, Frozen: true},
	} {
		q.Workers = 1
		x := tensorOf(64)
		quantize := func() {
			if scaling.Quantize(t.Context(), x, src, q) != nil {
				panic("refused")
			}
		}
		quantize()
		require.LessOrEqual(t, testing.AllocsPerRun(10, quantize), 3.0, "%v", q.Recipe)
	}
}
