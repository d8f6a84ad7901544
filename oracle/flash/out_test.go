package flash

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
)

// TestOutputsThatAreRounded checks that a kernel whose output is in 16 bits returns that of
// the same kernel in float32, rounded, that this is within its bound and accused of
// nothing, and that faults are named all the same.
func TestOutputsThatAreRounded(t *testing.T) {
	plain := Kernel{Tile: 16, Splits: 2} // P in float32: what is rounded counts
	ctx := context.Background()
	for cast, rounded := range map[Cast]func(float32) float32{
		BFloat16: func(x float32) float32 { return fp8.BFloat16FromFloat32(x).Float32() },
		Float16:  func(x float32) float32 { return float16.Fromfloat32(x).Float32() },
	} {
		k := plain
		k.Out = cast
		require.Equal(t, cast, k.Numerics().Out)
		for _, c := range kernelCases[:5] {
			p := c.shape.problem(16, 32, 16, 1)
			whole, err := Predict(ctx, p, plain, Options{})
			require.NoError(t, err)
			got, err := Predict(ctx, p, k, Options{})
			require.NoError(t, err)
			differ := 0
			for i, x := range whole.Out {
				require.Equal(t, rounded(x), got.Out[i])
				if got.Out[i] != x {
					differ++
				}
			}
			require.Positive(t, differ)
			require.Equal(t, whole.LSE, got.LSE)

			want, err := Exact[float64](ctx, p, Options{})
			require.NoError(t, err)
			limits, err := Bound(ctx, p, k.Numerics(), Options{})
			require.NoError(t, err)
			r := Compare(Got{Out: got.Out, LSE: got.LSE}, want, limits, p.Sizes())
			require.True(t, r.OK(), "%s: %s", c.name, &r)
			e, err := Explain(ctx, p, Got{Out: got.Out, LSE: got.LSE}, k, Options{})
			require.NoError(t, err)
			require.Zero(t, e.Wrong, "%s: %s", c.name, e)

			// What is within the tolerance in float32 is so when it is rounded.
			v, err := honestModel(t, p, plain).near(ctx, Options{}, false)
			require.NoError(t, err)
			w, err := honestModel(t, p, k).near(ctx, Options{}, false)
			require.NoError(t, err)
			for i, x := range v.Out {
				for _, y := range []float64{float64(x) - v.out[i], float64(x) + v.out[i]} {
					require.LessOrEqual(t, math.Abs(float64(rounded(float32(y)))-float64(w.Out[i])), w.out[i])
				}
			}
		}
		p := kernelCases[3].shape.problem(16, 32, 16, 1)
		for _, f := range []Fault{{Kind: "split-mean"}, {Kind: "top-left"}, {Kind: "sink-per-split"},
			{Kind: "scale-dropped", Of: OfV}} {
			got, err := Inject(ctx, p, k, f, Options{})
			require.NoError(t, err)
			e, err := Explain(ctx, p, Got{Out: got.Out, LSE: got.LSE}, k, Options{})
			require.NoError(t, err)
			require.True(t, names(e, f), "%v: %s", f, e)
			require.True(t, e.Findings[0].Bits)
		}
	}
	k := plain
	k.Out = E4M3
	require.ErrorIs(t, k.Check(), ErrKernel)
}

func honestModel(t *testing.T, p *attention.Problem, k Kernel) *model {
	m, err := newFaulty(p, k, Fault{})
	require.NoError(t, err)
	return m
}
