package statistics

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// meanOf returns the statistic of a mean over clusters of some values.
func meanOf(values []float64) func([]int) float64 {
	return func(clusters []int) float64 {
		sum := 0.0
		for _, i := range clusters {
			sum += values[i]
		}
		return sum / float64(len(clusters))
	}
}

// TestClustersOfAMean: for many values that are not skewed it is the normal interval.
func TestClustersOfAMean(t *testing.T) {
	values := make([]float64, 400)
	for i := range values {
		values[i] = float64(i%20) - 9.5
	}
	_, ofMean := Spread(values)
	got := Clusters{Count: len(values), Statistic: meanOf(values), Seed: 1, Resamples: 4000}.Interval(1)
	require.InDelta(t, 0, got.At, 1e-12)
	require.InDelta(t, -1.96*ofMean, got.Low, 0.1*ofMean)
	require.InDelta(t, 1.96*ofMean, got.High, 0.1*ofMean)
	require.Equal(t, got, Clusters{Count: len(values), Statistic: meanOf(values), Seed: 1, Resamples: 4000}.Interval(1))
	require.NotEqual(t, got, Clusters{Count: len(values), Statistic: meanOf(values), Seed: 2, Resamples: 4000}.Interval(1))
	wider := Clusters{Count: len(values), Statistic: meanOf(values), Seed: 1, Resamples: 4000}.Interval(10)
	require.Less(t, wider.Low, got.Low)
	require.Greater(t, wider.High, got.High)
}

// TestClustersCover: the interval of a ratio of sums of skewed values, which are 1.5 times as
// large as others on average, has the truth in it about as often as it says, and misses it to
// both sides.
func TestClustersCover(t *testing.T) {
	if testing.Short() {
		t.Skip("it resamples hundreds of samples")
	}
	const n, samples = 40, 300
	var below, above int
	for s := range samples {
		a, b := make([]float64, n), make([]float64, n)
		for i := range a {
			a[i] = -math.Log(1 - uniform(3, uint64(s), uint64(i)))
			b[i] = a[i] * (1 + uniform(4, uint64(s), uint64(i)))
		}
		got := Clusters{Count: n, Seed: uint64(s), Resamples: 1000, Statistic: func(clusters []int) float64 {
			var x, y float64
			for _, i := range clusters {
				x, y = x+a[i], y+b[i]
			}
			return y / x
		}}.Interval(1)
		if got.Low > 1.5 {
			below++
		}
		if got.High < 1.5 {
			above++
		}
	}
	require.InDelta(t, 0.05, float64(below+above)/samples, 0.035)
	require.Positive(t, below)
	require.Positive(t, above)
}

// TestClustersKeepTogether: values that come in pairs of equals are as few as their pairs.
func TestClustersKeepTogether(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
	twice := append(append([]float64{}, values...), values...)
	pairs := Clusters{Count: 20, Statistic: meanOf(values), Resamples: 2000}.Interval(1)
	each := Clusters{Count: 40, Statistic: meanOf(twice), Resamples: 2000}.Interval(1)
	require.InDelta(t, math.Sqrt2, (pairs.High-pairs.Low)/(each.High-each.Low), 0.15)
}

func TestClustersOfLittle(t *testing.T) {
	one := Clusters{Count: 1, Statistic: meanOf([]float64{3})}.Interval(1)
	require.Equal(t, Interval{3, math.Inf(-1), math.Inf(1)}, one)
	same := Clusters{Count: 5, Statistic: func([]int) float64 { return 2 }, Resamples: 100}.Interval(1)
	require.Equal(t, Interval{2, 2, 2}, same)
	none := Clusters{Count: 2, Statistic: func([]int) float64 { return math.NaN() }, Resamples: 100}.Interval(1)
	require.Equal(t, []float64{math.Inf(-1), math.Inf(1)}, []float64{none.Low, none.High})
}

// TestClustersOnOneSide: a largest value is above that of every resample without it, and equal
// to the others, which is a correction that is defined; that of a figure above all resamples',
// or of an end beyond them, is not.
func TestClustersOnOneSide(t *testing.T) {
	whole := func(clusters []int) bool {
		for i, c := range clusters {
			if i != c {
				return false
			}
		}
		return len(clusters) == 20
	}
	for _, c := range []struct{ all, others float64 }{{5, 1}, {-5, 1}} {
		got := Clusters{Count: 20, Resamples: 500, Statistic: func(clusters []int) float64 {
			if whole(clusters) {
				return c.all
			}
			return c.others + float64(clusters[0])/100
		}}.Interval(1)
		require.Equal(t, Interval{c.all, math.Inf(-1), math.Inf(1)}, got)
	}
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
	far := Clusters{Count: 20, Resamples: 500, Statistic: func(clusters []int) float64 {
		if whole(clusters) {
			return 12.9 // the mean and nearly two standard errors: few resamples are above
		}
		return meanOf(values)(clusters)
	}}.Interval(1)
	require.Equal(t, Interval{12.9, math.Inf(-1), math.Inf(1)}, far)
	require.Less(t, Clusters{Count: 20, Resamples: 500, Statistic: meanOf(values)}.Interval(1).High, 14.0)
}

// TestUniform: the numbers are spread evenly and differ in each of their counters.
func TestUniform(t *testing.T) {
	var sum, squares float64
	const n = 100000
	for i := range uint64(n) {
		x := uniform(1, i/100, i%100)
		require.True(t, x >= 0 && x < 1)
		sum += x
		squares += x * x
	}
	require.InDelta(t, 0.5, sum/n, 0.004)
	require.InDelta(t, 1.0/3, squares/n, 0.004)
	require.NotEqual(t, uniform(1, 2, 3), uniform(1, 3, 2))
	require.NotEqual(t, uniform(1, 2, 3), uniform(2, 1, 3))
}

// TestAcceleration: that of a mean is a sixth of the skewness over the root of the number
// (Efron 1987, section 6).
func TestAcceleration(t *testing.T) {
	values := []float64{1, 2, 3, 4, 20}
	c := Clusters{Count: 5, Statistic: meanOf(values)}
	var squares, cubes float64
	for _, x := range values {
		squares += (x - 6) * (x - 6)
		cubes += (x - 6) * (x - 6) * (x - 6)
	}
	require.InDelta(t, cubes/(6*math.Pow(squares, 1.5)), c.acceleration([]int{0, 1, 2, 3, 4}), 1e-12)
}
