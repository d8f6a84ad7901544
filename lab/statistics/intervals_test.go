package statistics

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStandardErrors: quantiles of Student's t as printed in tables, never less than 2.
func TestStandardErrors(t *testing.T) {
	for _, c := range []struct {
		n, family int
		want      float64
	}{
		{2, 1, 12.706}, {3, 1, 4.303}, {6, 1, 2.571}, {12, 1, 2.201}, {31, 1, 2.042}, {1000, 1, 2},
		{11, 5, 3.169}, // 99 % of 10 degrees of freedom, two-sided
		{21, 5, 2.845}, {6, 5, 4.032}, {6, 0, 2.571},
	} {
		require.InDelta(t, c.want, StandardErrors(c.n, c.family), 5e-4, "%d values, one of %d", c.n, c.family)
	}
	require.Equal(t, math.Inf(1), StandardErrors(1, 1))
}

// TestOfMean has the interval of a textbook: ten values around 5 with a standard deviation of
// 0.02404, and t of 9 degrees of freedom, 2.262.
func TestOfMean(t *testing.T) {
	got := OfMean([]float64{5.01, 4.97, 5.03, 4.99, 5.00, 5.02, 4.96, 5.01, 5.03, 4.98}, 1)
	half := 2.262 * 0.0244949 / math.Sqrt(10)
	require.InDelta(t, 5.0, got.At, 1e-12)
	require.InDelta(t, 5.0-half, got.Low, 1e-5)
	require.InDelta(t, 5.0+half, got.High, 1e-5)
	require.Equal(t, Interval{3, math.Inf(-1), math.Inf(1)}, OfMean([]float64{3}, 1))
	require.True(t, math.IsNaN(OfMean(nil, 1).At))
	require.True(t, math.IsNaN(OfMean([]float64{1, math.NaN()}, 1).Low))
}

func TestPairs(t *testing.T) {
	a, b := []float64{3, 2}, []float64{2, 4}
	for _, c := range []struct {
		of   func(a, b []float64) []float64
		want []float64
	}{
		{Differences, []float64{1, -2}},
		{Ratios, []float64{1.5, 0.5}},
		{PercentAbove, []float64{50, -50}},
	} {
		require.Equal(t, c.want, c.of(a, b))
		require.Panics(t, func() { c.of(a, nil) })
	}
}

// TestPower: with no effect on a bound the chance is that of one side; with a textbook's
// noncentral t the published power; with two bounds that of simulated samples.
func TestPower(t *testing.T) {
	up, down := math.Inf(1), math.Inf(-1)
	require.InDelta(t, 0.025, Plan{Sample: 10, Family: 1, SD: 1}.Power(0, up), 1e-6, "the chance of a false yes")
	require.InDelta(t, 0.025, Plan{Sample: 10, Family: 1, SD: 1}.Power(down, 0), 1e-6)
	require.InDelta(t, 0.005, Plan{Sample: 10, Family: 5, SD: 1}.Power(0, up), 1e-6)
	// G*Power's and R's power.t.test(n, delta = 0.5, type = "one.sample"): 34 values have 0.8078.
	require.InDelta(t, 0.8078, Plan{Sample: 34, Family: 1, Mean: 0.5, SD: 1}.Power(0, up), 2e-4)
	require.InDelta(t, 0.8078, Plan{Sample: 34, Family: 1, Mean: 2.5, SD: 5}.Power(0, up), 2e-4)
	require.Equal(t, 1.0, Plan{Sample: 2, Mean: 1}.Power(0, 2))
	require.Zero(t, Plan{Sample: 2, Mean: 3}.Power(0, 2))
	require.Zero(t, Plan{Sample: 1, Mean: 1, SD: 1}.Power(0, 2))
}

// TestPowerBySimulation draws samples and counts how many intervals are inside.
func TestPowerBySimulation(t *testing.T) {
	for _, c := range []struct {
		plan         Plan
		lower, upper float64
	}{
		{Plan{Sample: 12, Family: 1, SD: 0.2}, -0.2, 0.2},
		{Plan{Sample: 8, Family: 3, Mean: 0.1, SD: 0.3}, -0.5, 0.5},
		{Plan{Sample: 5, Family: 2, Mean: -1, SD: 1}, math.Inf(-1), 1},
	} {
		const draws = 20000
		inside, k := 0, StandardErrors(c.plan.Sample, c.plan.Family)
		values := make([]float64, c.plan.Sample)
		for i := range draws {
			for j := range values {
				u, v := 1-uniform(9, uint64(i), uint64(2*j)), uniform(9, uint64(i), uint64(2*j+1))
				values[j] = c.plan.Mean + c.plan.SD*math.Sqrt(-2*math.Log(u))*math.Cos(2*math.Pi*v)
			}
			if _, ofMean := Spread(values); Mean(values)-k*ofMean > c.lower && Mean(values)+k*ofMean < c.upper {
				inside++
			}
		}
		require.InDelta(t, float64(inside)/draws, c.plan.Power(c.lower, c.upper), 0.015, "%+v", c.plan)
	}
}

// uniform returns a number in [0, 1) that depends on its three counters: SplitMix64's
// finalizer (Steele, Lea and Flood 2014), once for each.
func uniform(seed, i, j uint64) float64 {
	return float64(mix(mix(mix(seed)+i)+j)>>11) / (1 << 53)
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
