package fp4

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEffect: six values, one of eleven comparisons: Student's t of five degrees of freedom at
// 1 - 0.025/11, integrated by another program, is 4.882.
func TestEffect(t *testing.T) {
	s := madeUp(asClaimed)
	e := s.newEffect([]float64{0.9, 1.1, 0.9, 1.1, 0.9, 1.1})
	require.InDelta(t, 1, e.At, 1e-12)
	require.InDelta(t, 4.882*0.1/2.2361, e.half(), 1e-3)
	require.True(t, e.seen())
	require.True(t, s.newEffect([]float64{-2, -2.1, -2}).seen())
	require.False(t, s.newEffect([]float64{-1, 2, 3}).seen())
}

// TestPairs: differences are of the same seed, and of the ways that are asked for.
func TestPairs(t *testing.T) {
	s := madeUp(func(seed, way int) float64 { return float64(10*(seed+1)) * (1 + float64(way)/100) })
	require.InDeltaSlice(t, []float64{3, 3, 3}, s.over(nvfp4Way, bf16Way).bySeed[:3], 1e-9)
	require.InDelta(t, 100*(1.05/1.03-1), s.over(firstPart+1, nvfp4Way).At, 1e-9)
}
