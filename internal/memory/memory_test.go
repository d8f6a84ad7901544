package memory

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFits(t *testing.T) {
	require.Greater(t, Total(), int64(1<<20))
	require.True(t, Fits(0, 8))
	require.True(t, Fits(1<<17, 8))
	require.False(t, Fits(-1, 1))
	require.False(t, Fits(math.MaxInt64, 1))
	require.False(t, Fits(math.MaxInt64, 8))
}
