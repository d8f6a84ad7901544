package scaling_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestFrozen: a frozen quantizer makes the codes that another makes, and leaves the
// history as it is, its grid included.
func TestFrozen(t *testing.T) {
	src := []float32{1, 2, -30, 4, 5, 6}
	for _, block := range []tensor.Block{{}, {Rows: 1, Cols: 2}} {
		recipe := scaling.Recipe{Profile: scaling.TEDelayed, Block: block, Delayed: scaling.Delayed{Length: 2}}
		var hs scaling.Histories
		h, err := hs.Get("x", recipe)
		require.NoError(t, err)
		quantize := func(frozen bool) *tensor.Tensor {
			x := &tensor.Tensor{Name: "x", Shape: []int{1, 6}}
			require.NoError(t, scaling.Quantize(t.Context(), x, src, scaling.Quantizer{Recipe: recipe, History: h, Frozen: frozen}))
			return x
		}
		for range 3 {
			before := hs.State()
			frozen := quantize(true)
			require.Equal(t, before, hs.State())
			require.Equal(t, frozen, quantize(false))
			require.NotEqual(t, before, hs.State())
			hs.Update()
		}
	}
}
