package oracle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestOuterTies has sums that are half way between two float32 but for a rest far below,
// under outer scales, where the sums of blocks are exact in float64 and where they are not.
func TestOuterTies(t *testing.T) {
	one := fp8.EncodeOne(float32(1), fp8.E5M2, fp8.Policy{})
	most, least := fp8.E5M2.MaxCode(), byte(1)
	for name, first := range map[string]struct {
		a, b  [4]byte // of the first block, whose sum times scale is 1
		scale float32
	}{
		"narrow": {[4]byte{one}, [4]byte{one}, 1},
		"wide":   {[4]byte{most, most | 0x80, least}, [4]byte{most, most, least}, 0x1p32},
	} {
		for _, rest := range []float32{0, 0x1p-80, 0x1p-120} {
			for _, outer := range []tensor.Outer{{Scales: []float32{2}}, {Scales: []float32{0.5}, Divide: true}} {
				operand := func(codes [4]byte, scales ...float32) *tensor.Tensor {
					x := &tensor.Tensor{Format: fp8.E5M2, Shape: []int{1, 12}, Block: tensor.Block{Rows: 1, Cols: 4}, Scales: scales}
					x.Codes = append(codes[:], one, 0, 0, 0, one, 0, 0, 0)
					return x
				}
				a, b := operand(first.a, first.scale, 0x1p-24, rest), operand(first.b, 1, 1, 1)
				a.Outer = outer
				want := float32(2) // to even
				if rest > 0 {
					want = 2 * (1 + 0x1p-23)
				}
				got := make([]float32, 1)
				require.NoError(t, Exact(t.Context(), got, a, b, Options{}))
				require.Equal(t, want, got[0], "%s, rest %g, %v", name, rest, outer)
			}
		}
	}
	// 1/3 is no number of base 2, and nearer to the one below.
	a := &tensor.Tensor{Format: fp8.E5M2, Shape: []int{1, 1}, Codes: []byte{one}, Scales: []float32{1}, Outer: tensor.Outer{Scales: []float32{3}, Divide: true}}
	b := &tensor.Tensor{Format: fp8.E5M2, Shape: []int{1, 1}, Codes: []byte{one}, Scales: []float32{1}}
	got := make([]float32, 1)
	require.NoError(t, Exact(t.Context(), got, a, b, Options{Bias: []float32{-0x1.555556p-2}}))
	require.Equal(t, float32(1./3-0x1.555556p-2), got[0], "rounded once, with the bias")
}

// TestOuterOverflow wants a bound of +Inf where an order that is allowed overflows.
func TestOuterOverflow(t *testing.T) {
	one := fp8.EncodeOne(float32(1), fp8.E4M3, fp8.Policy{})
	operand := func(scale, outer float32) *tensor.Tensor {
		x := &tensor.Tensor{Format: fp8.E4M3, Shape: []int{1, 32}, Block: tensor.Block{Rows: 1, Cols: 2}, Outer: tensor.Outer{Scales: []float32{outer}}}
		for range 32 {
			x.Codes = append(x.Codes, one)
		}
		for range 16 {
			x.Scales = append(x.Scales, scale)
		}
		return x
	}
	a, b := operand(0x1p64, 0x1p-60), operand(1, 0x1p60)
	bound := make([]float64, 1)
	require.NoError(t, Bound[float32](t.Context(), bound, nil, a, b, Accumulation{}, Options{}))
	require.True(t, math.IsInf(bound[0], 1), "the sum times the outer scale of B alone: %v", bound[0])
	require.NoError(t, Bound[float32](t.Context(), bound, nil, a, b, Accumulation{Scales: AThenB}, Options{}))
	require.Less(t, bound[0], 0x1p69*0x1p-18)
}
