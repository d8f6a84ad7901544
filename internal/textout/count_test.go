package textout

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 steps", 1: "1 step", 2: "2 steps", 1000: "1000 steps"} {
		require.Equal(t, want, Count(n, "step"))
	}
	require.Equal(t, "1 value", Count(int64(1), "value"))
	require.Equal(t, "2 projections of MTP", Count(2, "projection of MTP"))
}

// TestLossOrder sorts a tensor of each sort.
func TestLossOrder(t *testing.T) {
	sorted := []float64{
		LossOrder(3, 40), LossOrder(0, -2), LossOrder(0, 31.5), LossOrder(0, 40), LossOrder(0, math.NaN()),
	}
	require.True(t, slices.IsSorted(sorted), "%v", sorted)
	require.Equal(t, LossOrder(1, math.NaN()), LossOrder(3, 40))
}
