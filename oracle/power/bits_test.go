package power

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestBits has operands of which only product 0 is not swallowed.
func TestBits(t *testing.T) {
	few := func(name string, rows int) *tensor.Tensor {
		x := &tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: []int{rows, 16}, Codes: make([]byte, rows*16), Scales: []float32{1}}
		for i := range x.Codes {
			x.Codes[i] = 2
			if i%16 == 0 {
				x.Codes[i] = 0x7D
			}
		}
		return x
	}
	a, b := few("a", 24), few("b", 32)
	for _, kernel := range []oracle.Kernel{{}, {Model: oracle.HopperWGMMA()}} {
		sights, err := Bits[float32](t.Context(), nil, a, b, kernel, Options{})
		require.NoError(t, err)
		require.Equal(t, []Sight{
			{Fault: "product k of all elements lost", Seen: 1, Tried: 16},
			{Fault: "the lowest bit of one code of A flipped", Seen: 3, Tried: 48},
			{Fault: "the lowest bit of one code of B flipped", Seen: 4, Tried: 64},
		}, sights)
		require.Equal(t, "seen in 3 of 48 places", sights[1].String())
	}
	c := make([]float32, 24*32)
	for i := range c {
		c[i] = 1e20
	}
	sights, err := Bits(t.Context(), c, a, b, oracle.Kernel{}, Options{})
	require.NoError(t, err)
	for _, s := range sights {
		require.Zero(t, s.Seen, s.Fault)
	}
	bias := make([]float32, 32)
	bias[0] = 1e20 // column 0 shows nothing of B's row 0
	sights, err = Bits[float32](t.Context(), nil, a, b, oracle.Kernel{}, Options{Bias: bias})
	require.NoError(t, err)
	require.Equal(t, []int{1, 3, 3}, []int{sights[0].Seen, sights[1].Seen, sights[2].Seen})

	require.ErrorIs(t, second(Bits(t.Context(), c[1:], a, b, oracle.Kernel{}, Options{})), gemm.ErrOperands)
	b.Shape = []int{64, 8}
	_, err = Bits[float32](t.Context(), nil, a, b, oracle.Kernel{}, Options{})
	require.ErrorContains(t, err, "power: ")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Bits[float32](ctx, nil, a, few("b", 32), oracle.Kernel{}, Options{})
	require.ErrorIs(t, err, context.Canceled)
}
