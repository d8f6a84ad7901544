package fp4

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEffect(t *testing.T) {
	e := newEffect([]float64{1, 2, 3})
	require.Equal(t, 2.0, e.mean)
	require.InDelta(t, 1/math.Sqrt(3), e.ofMean, 1e-12)
	require.True(t, e.seen())
	require.True(t, e.worse())
	require.False(t, e.better())
	require.True(t, newEffect([]float64{-1, -2, -3}).better())
	require.False(t, newEffect([]float64{-1, 2, 3}).seen())
	require.False(t, newEffect([]float64{0.01, 0.011, 0.012}).worse(), "it is seen and too small")
	require.False(t, newEffect([]float64{1, math.NaN(), 1}).worse())
	require.Equal(t, "+2.00 % (standard error 0.58)", e.String())
}

// TestPairs: differences are of the same seed, and of the ways that are asked for.
func TestPairs(t *testing.T) {
	s := madeUp(func(seed, way int) float64 { return float64(10*(seed+1)) * (1 + float64(way)/100) })
	require.InDeltaSlice(t, []float64{3, 3, 3}, s.over(nvfp4Way, bf16Way).bySeed, 1e-9)
	require.InDelta(t, 100*(1.05/1.03-1), s.over(firstPart+1, nvfp4Way).mean, 1e-9)
}
