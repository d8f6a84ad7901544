package oracle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestBoundShortSubnormals has models that keep few bits, whose subnormal results end
// before those of float32 do.
func TestBoundShortSubnormals(t *testing.T) {
	r := source(91)
	fused, scaled := Hopper(BF16), BlackwellMXFP8()
	for range rounds(400) {
		k := 1 + r.IntN(100)
		fused.Keep = r.IntN(24)
		scaled.Keep = fused.Keep
		a, b := randomFloats(r, "a", BF16, 2, k, 3), randomFloats(r, "b", BF16, 2, k, 3)
		for i := range a.Values {
			a.Values[i] *= 0x1p-70
			b.Values[i] *= 0x1p-66
		}
		want, got, bound := make([]float32, 4), make([]float32, 4), make([]float64, 4)
		within := func(m Model) {
			for i := range got {
				require.LessOrEqual(t, math.Abs(float64(got[i])-float64(want[i])), bound[i], "%s, Keep=%d, K=%d", m.Name, m.Keep, k)
			}
		}
		kernel := Kernel{Model: fused, Promote: []int{0, 32}[r.IntN(2)]}
		require.NoError(t, ExactFloats(t.Context(), want, a, b, Options{}))
		require.NoError(t, PredictFloats(t.Context(), got, nil, a, b, kernel, Options{}))
		require.NoError(t, BoundFloats[float32](t.Context(), bound, nil, a, b, Accumulation{Kernel: kernel}, Options{}))
		within(fused)

		x := randomTensor(r, "x", fp8.E4M3, tensor.Block{Rows: 1, Cols: 32}, kind{narrow: true}, 2, k)
		for i := range x.Codes {
			x.Codes[i] = fp8.EncodeOne(float32(r.NormFloat64()), fp8.E4M3, fp8.Policy{})
		}
		for i := range x.Scales {
			x.Scales[i] = 0x1p-67
		}
		kernel.Model = scaled
		require.NoError(t, Exact(t.Context(), want, x, x, Options{}))
		require.NoError(t, Predict(t.Context(), got, nil, x, x, kernel, Options{}))
		require.NoError(t, Bound[float32](t.Context(), bound, nil, x, x, Accumulation{Kernel: kernel}, Options{}))
		within(scaled)
	}
}
