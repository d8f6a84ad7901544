package accumulation

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/labtest"
	"github.com/octavo-fp8/octavo/tensor"
)

func TestAccumulation(t *testing.T) {
	o := labtest.Short()
	o.Seed = 7
	r := labtest.Run(t, Experiment, o)
	labtest.Judged(t, r, 0, 6)
	require.Len(t, r.Tables[0].Rows, 3*2*4, "K, operands, adders")
	seeds := labtest.Table(t, r, "seeds").Rows
	require.Equal(t, []any{uint64(7), uint64(8)}, []any{seeds[0][3], seeds[1][3]})
}

func TestDeviation(t *testing.T) {
	exact := make([]float32, 121)
	got := make([]float32, 121)
	for i := range exact {
		exact[i] = []float32{1, -2}[i%2]
		got[i] = exact[i]
	}
	exact[0], got[0] = 0, 5 // no relative error
	require.Equal(t, deviation{}, deviationOf(got, exact))

	got[1] = -1  // too small by half, of -2
	got[2] = 1.1 // too large by a tenth, of 1
	d := deviationOf(got, exact)
	require.InDelta(t, (-1+0.1)/(60*1+60*2), d.bias, 1e-7)
	require.InDelta(t, math.Sqrt((1+0.01)/(60*1+60*4)), d.root, 1e-7)
	require.InDelta(t, 1.0/120, d.tooSmall, 1e-12)
	require.InDelta(t, 0.25, d.ofSixty, 1e-7, "of 0.5 and 0")
	require.Zero(t, d.median)
}

func TestLargestOfGroups(t *testing.T) {
	require.Equal(t, []float64{3, 9}, largestOfGroups([]float64{1, 3, 2, 9, 4, 5, 100}, 3))
	require.Empty(t, largestOfGroups([]float64{1, 2}, 3))
}

// TestAdders compares all adders where nothing needs rounding, and where a tensor
// core without promotion loses something: 65536 and many times 2^-12.
func TestAdders(t *testing.T) {
	const k = 3200
	ones := &tensor.Tensor{Shape: []int{1, k}, Format: 0, Codes: make([]byte, k), Scales: []float32{1}}
	for i := range ones.Codes {
		ones.Codes[i] = 0x38 // 1
	}
	for _, way := range adders() {
		var c [1]float32
		require.NoError(t, way.multiply(t.Context(), c[:], ones, ones, 1))
		require.Equal(t, float32(k), c[0], way.name)
	}
	small := &tensor.Tensor{Shape: []int{1, k}, Format: 0, Codes: make([]byte, k), Scales: []float32{1}}
	for i := range small.Codes {
		small.Codes[i] = 0x08 // 2^-6
	}
	small.Codes[0] = 0x78 // 256
	got := make(map[string]float32)
	for _, way := range adders() {
		var c [1]float32
		require.NoError(t, way.multiply(t.Context(), c[:], small, small, 1))
		got[way.name] = c[0]
	}
	exact := float32(65536 + (k-1)/4096.0)
	require.Equal(t, float32(65536), got["Hopper, no promotion"])
	require.Greater(t, got["Hopper, every 128"], float32(65536))
	require.InDelta(t, exact, got["FP32, octavo's order"], 0.05)
	require.Equal(t, float32(65536), got["Blackwell tcgen05"], "25 bits below 2^16 end at 2^-9, products are 2^-12")
}

func TestOperandsDependOnTheSeed(t *testing.T) {
	for _, kind := range []operandKind{bell, uniform} {
		a, b := kind.values(3, 5, 1), kind.values(3, 5, 2)
		require.Len(t, a, 15)
		require.NotEqual(t, a, b)
		require.Equal(t, a, kind.values(3, 5, 1))
	}
	for _, v := range uniform.values(10, 10, 1) {
		require.True(t, v >= 0 && v < 1)
	}
}

func TestAccumulationErrors(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Experiment.Run(ctx, labtest.Short())
	require.ErrorIs(t, err, context.Canceled)
}
