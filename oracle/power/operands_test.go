package power

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestOperands demands that correct kernels have no error, and that faults show.
func TestOperands(t *testing.T) {
	blocks := []tensor.Block{{}, {Rows: 1, Cols: 128}, {Rows: 1, Cols: 32}}
	for i, k := range []int{1, 31, 1000, 16384} {
		for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2} {
			block := blocks[i%len(blocks)]
			a, b := Operands(6, 5, k, f, block, 9)
			want := make([]float32, 30)
			require.NoError(t, oracle.Exact(t.Context(), want, a, b, oracle.Options{}))
			for _, kn := range kernels(3) {
				require.Equal(t, want, kn.multiply(t, a, b), "%s, K = %d, %v", kn.name, k, f)
			}
			require.NotEqual(t, want, octavo[float32](t, flushed(a), b), "subnormals")
			last := func(codes []byte) { codes[len(codes)-1] = 0 }
			require.NotEqual(t, want, octavo[float32](t, changed(a, last), b), "the last k of a row")
			for at := range min(k, 200) {
				require.NotEqual(t, want, octavo[float32](t, changed(a, func(codes []byte) { codes[at] ^= 1 }), b), "a bit at %d", at)
			}
			if k < 16384 { // in blocks of 32 Hopper loses nothing
				continue
			}
			got := make([]float32, 30)
			require.NoError(t, oracle.Predict(t.Context(), got, nil, a, b, oracle.Kernel{Model: oracle.HopperWGMMA()}, oracle.Options{}))
			require.NotEqual(t, want, got, "Hopper's 14 bits, K = %d, %v", k, f)
			require.NotEqual(t, narrowAll[fp8.BFloat16](want), wrongWay(want), "a rounding the wrong way")
		}
	}
	a, b := Operands(1, 1, 1<<22, fp8.E4M3, tensor.Block{}, 1) // an int32 has not 900 times K
	sum := 0.0
	for k, c := range a.Codes {
		sum += math.Abs(float64(a.Format.Float32(c)) * float64(b.Format.Float32(b.Codes[k])))
	}
	require.LessOrEqual(t, sum*float64(a.Scales[0])*float64(b.Scales[0]), 0x1p24*0x1p-18)
	require.Panics(t, func() { Operands(-1, 1, 1, fp8.E4M3, tensor.Block{}, 0) })
	require.Panics(t, func() { Operands(1, 1, 1<<25, fp8.E4M3, tensor.Block{}, 0) })
	require.Panics(t, func() { Operands(1<<20, 1, 1<<20, fp8.E4M3, tensor.Block{}, 0) })
	require.Panics(t, func() { Operands(1, 1, 1, 99, tensor.Block{}, 0) })
}

func TestBlind(t *testing.T) {
	a, b := normalPair(20, 30, 64, tensor.Block{}, 1, 2)
	c := octavo[float32](t, a, b)
	bound := make([]float64, len(c))
	for i := range bound {
		bound[i] = 2
	}
	blind := NewBlind(bound, c, nil, a, b)
	require.InDelta(t, 2, float64(blind.Bound), 1e-12)
	require.InDelta(t, 8, float64(blind.Result), 1)
	require.InDelta(t, 1, float64(blind.Product), 0.1)
	require.Contains(t, blind.String(), "errors of up to 2 in one element, 0.25 of the root mean square of C, or 2")
	require.PanicsWithValue(t, wrongC, func() { NewBlind(bound[1:], c, nil, a, b) })
}
