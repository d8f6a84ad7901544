package statistics

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuantile(t *testing.T) {
	require.Zero(t, Quantile(nil, 0.5))
	require.Equal(t, 3.0, Quantile([]float64{3}, 0.7))
	x := []float64{1, 2, 4, 8, 16}
	for share, want := range map[float64]float64{0: 1, 0.25: 2, 0.3: 2.4, 0.5: 4, 0.875: 12, 1: 16} {
		require.InDelta(t, want, Quantile(x, share), 1e-12, share)
	}
}

func TestShareAbove(t *testing.T) {
	require.Zero(t, ShareAbove(nil, 1))
	x := []float64{1, 2, 2, 2, 3}
	for limit, want := range map[float64]float64{0: 1, 1: 0.8, 1.5: 0.8, 2: 0.2, 3: 0, 4: 0} {
		require.Equal(t, want, ShareAbove(x, limit), limit)
	}
}

func TestSpread(t *testing.T) {
	deviation, ofMean := Spread([]float64{1, 2, 3, 4})
	require.InDelta(t, math.Sqrt(5.0/3), deviation, 1e-12)
	require.InDelta(t, math.Sqrt(5.0/12), ofMean, 1e-12)
}

func TestMedian(t *testing.T) {
	values := []float64{3, 1, 2}
	require.Equal(t, 2.0, Median(values))
	require.Equal(t, []float64{3, 1, 2}, values, "it does not sort its argument")
	require.Equal(t, 2.5, Median([]float64{4, 1, 3, 2}))
}
