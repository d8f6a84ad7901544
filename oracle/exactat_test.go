package oracle

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestExactAt demands the bits of Exact and Bound, of formats whose sums are exact in float64
// and of others, of few blocks of K and of so many that sums are not kept.
func TestExactAt(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	operand := func(name string, f fp8.Format, rows, k int) *tensor.Tensor {
		x := &tensor.Tensor{Name: name, Format: f, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: 32}}
		for range rows * k {
			x.Codes = append(x.Codes, byte(r.Uint32()))
			if r.IntN(k) > 0 && f.IsNaN(x.Codes[len(x.Codes)-1]) {
				x.Codes[len(x.Codes)-1] = 1
			}
		}
		for range rows * ((k + 31) / 32) {
			x.Scales = append(x.Scales, 0.5+r.Float32())
		}
		return x
	}
	for _, size := range [][3]int{{70, 50, 100}, {1, 40, 70}, {3, 17, 32 * (mostKept + 1)}, {4, 4, 0}} {
		m, n, k := size[0], size[1], size[2]
		for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2} {
			if k > 1e5 && f == fp8.E5M2 {
				continue // seconds
			}
			a, b := operand("a", f, m, k), operand("b", fp8.E4M3, n, k)
			old, o := make([]float32, m*n), Options{Accumulate: true, Bias: make([]float32, n)}
			for i := range old {
				old[i] = r.Float32()
			}
			exact, bound := append([]float32{}, old...), make([]float64, m*n)
			require.NoError(t, Exact(t.Context(), exact, a, b, o))
			for _, acc := range []Accumulation{{}, {Truncated: true}, {Kernel: Kernel{Model: HopperWGMMA()}}} {
				require.NoError(t, Bound(t.Context(), bound, old, a, b, acc, o))
				for _, some := range []int{1, 7, m * n, -1} {
					places := r.Perm(m * n)[:min(max(some, 0), m*n)]
					at := places
					if some < 0 {
						at = nil // all, in order
						for i := range m * n {
							places = append(places, i)
						}
					}
					gotExact, gotBound := make([]float32, len(places)), make([]float64, len(places))
					require.NoError(t, ExactAt(t.Context(), gotExact, gotBound, old, at, a, b, acc, o))
					for i, place := range places {
						require.Equal(t, number32(exact[place]), number32(gotExact[i]))
						require.Equal(t, bound[place], gotBound[i])
					}
					require.NoError(t, ExactAt(t.Context(), gotExact, nil, old, at, a, b, acc, o))
				}
			}
		}
	}
	a, b := operand("a", fp8.E4M3, 2, 64), operand("b", fp8.E4M3, 3, 64)
	two := make([]float32, 2)
	for want, call := range map[string]func() error{
		"place 6 of a C of 2x3": func() error { return ExactAt(t.Context(), two, nil, nil, []int{0, 6}, a, b, Accumulation{}, Options{}) },
		"place -1 of a C": func() error {
			return ExactAt(t.Context(), two, nil, nil, []int{-1, 0}, a, b, Accumulation{}, Options{})
		},
		"2 results for 1 places": func() error { return ExactAt(t.Context(), two, nil, nil, []int{1}, a, b, Accumulation{}, Options{}) },
		"2 results for 6 places": func() error { return ExactAt(t.Context(), two, nil, nil, nil, a, b, Accumulation{}, Options{}) },
		"1 bounds for 2 places": func() error {
			return ExactAt(t.Context(), two, make([]float64, 1), nil, []int{0, 1}, a, b, Accumulation{}, Options{})
		},
		"bias of 2 elements": func() error {
			return ExactAt(t.Context(), two, nil, nil, []int{0, 1}, a, b, Accumulation{}, Options{Bias: two})
		},
		"old C of 2 elements": func() error {
			return ExactAt(t.Context(), two, nil, two, []int{0, 1}, a, b, Accumulation{}, Options{Accumulate: true})
		},
		"-1 workers: want 0": func() error {
			return ExactAt(t.Context(), two, nil, nil, []int{0, 1}, a, b, Accumulation{}, Options{Workers: -1})
		},
	} {
		require.ErrorContains(t, call(), want)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, ExactAt(ctx, two, nil, nil, []int{0, 1}, a, b, Accumulation{}, Options{}), context.Canceled)
}

// number32 is x, or a string for a NaN, which is not equal to itself.
func number32(x float32) any {
	if x != x {
		return "NaN"
	}
	return x
}
