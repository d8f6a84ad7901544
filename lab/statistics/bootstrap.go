package statistics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Clusters is what an interval is found of by resampling: parts of the data that are
// independent of each other, though values within a part are not.
type Clusters struct {
	Count int

	// Statistic returns the figure of a sample with the clusters of the given numbers, of
	// which some come several times and others not at all. The list is overwritten later.
	Statistic func(clusters []int) float64

	Seed      uint64
	Resamples int // 0: 10000, which leaves 25 beyond each end of an interval at 99.5 %
}

// Interval returns the figure of all clusters and its interval, one of so many in a family.
// The interval is Efron's BCa, since the figures of the lab are ratios and shares, which are
// skewed and biased: plain percentiles are off by the order of 1/sqrt(clusters), BCa by that
// of 1/clusters (Efron 1987, Better Bootstrap Confidence Intervals). It wants a statistic that
// is smooth, so no maximum and no quantile of few values, and 20 clusters or more: of fewer
// take one value each and [OfMean]. Random numbers depend on the seed, the resample and the
// draw, and on nothing else.
//
// The interval reaches everywhere, so that nothing is decided by it, with fewer than two
// clusters, where a resample's figure is not a number, and where all resamples' figures are on
// one side of that of all clusters, or so far to one side that an end would be beyond them:
// there the correction is not defined, and plain percentiles would miss the truth.
func (c Clusters) Interval(family int) Interval {
	order := make([]int, c.Count)
	for i := range order {
		order[i] = i
	}
	at := c.Statistic(slices.Clone(order))
	everywhere := Interval{at, math.Inf(-1), math.Inf(1)}
	if c.Count < 2 {
		return everywhere
	}
	figures := c.resampled()
	if slices.ContainsFunc(figures, math.IsNaN) {
		return everywhere
	}
	shift := c.bias(figures, at)
	if math.IsInf(shift, 0) {
		return everywhere
	}
	a := c.acceleration(order)
	share := func(tail float64) float64 {
		z := shift + distuv.UnitNormal.Quantile(tail)
		if float64(a*z) >= 1 { // beyond the pole of the correction
			return math.NaN()
		}
		return distuv.UnitNormal.CDF(shift + z/(1-float64(a*z)))
	}
	tail, least := Tail(family), 1/float64(len(figures))
	low, high := share(tail), share(1-tail)
	if !(low >= least && high <= 1-least) {
		return everywhere
	}
	return Interval{at, Quantile(figures, low), Quantile(figures, high)}
}

// resampled returns the figures of all resamples, sorted.
func (c Clusters) resampled() []float64 {
	n := c.Resamples
	if n == 0 {
		n = 10000
	}
	figures, drawn := make([]float64, n), make([]int, c.Count)
	for i := range figures {
		for j := range drawn {
			drawn[j] = int(uniform(c.Seed, uint64(i), uint64(j)) * float64(c.Count))
		}
		figures[i] = c.Statistic(drawn)
	}
	slices.Sort(figures)
	return figures
}

// bias returns how far the figure is from the middle of the resamples', in standard
// deviations of a normal distribution. Of resamples that equal the figure half count.
func (c Clusters) bias(sorted []float64, at float64) float64 {
	below, _ := slices.BinarySearch(sorted, at)
	upTo := below
	for upTo < len(sorted) && sorted[upTo] == at {
		upTo++
	}
	return distuv.UnitNormal.Quantile(float64(below+upTo) / 2 / float64(len(sorted)))
}

// acceleration returns how fast the figure's standard error changes with the figure, from
// what the figure is without each of the clusters.
func (c Clusters) acceleration(order []int) float64 {
	without := make([]float64, c.Count)
	rest := make([]int, c.Count-1)
	for i := range order {
		copy(rest, order[:i])
		copy(rest[i:], order[i+1:])
		without[i] = c.Statistic(rest)
	}
	mean := Mean(without)
	var squares, cubes float64
	for _, x := range without {
		d := mean - x
		squares += float64(d * d)
		cubes += float64(d * d * d)
	}
	if squares == 0 || math.IsNaN(squares) {
		return 0
	}
	return cubes / (6 * math.Pow(squares, 1.5))
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
