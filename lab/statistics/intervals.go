package statistics

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Significance is the chance that a family of intervals, taken together, leaves to one that
// misses what it is about.
const Significance = 0.05

// StandardErrors returns how many standard errors an interval reaches to each side of the
// mean of n independent normal values, one of so many in a family: Student's t for
// Significance, divided by the number of intervals (Bonferroni) and both sides, and at
// least 2. Fewer than two values have no interval: +Inf.
func StandardErrors(n, family int) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	t := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}
	return max(2, t.Quantile(1-Tail(family)))
}

// Tail returns the chance that is left to each side of an interval, one of so many in a
// family.
func Tail(family int) float64 { return Significance / 2 / float64(max(family, 1)) }

// Interval is a figure and where the true one lies.
type Interval struct {
	At, Low, High float64
}

// OfMean returns the mean of independent values and its interval, one of so many in a family
// (see [StandardErrors]). With fewer than two values it reaches everywhere.
func OfMean(values []float64, family int) Interval {
	m := Mean(values)
	if len(values) < 2 {
		return Interval{m, math.Inf(-1), math.Inf(1)}
	}
	_, ofMean := Spread(values)
	half := float64(StandardErrors(len(values), family) * ofMean)
	return Interval{m, m - half, m + half}
}

// Differences returns a[i]-b[i], of values that were measured under the same seeds. It
// panics if there are not as many of each.
func Differences(a, b []float64) []float64 {
	return paired(a, b, func(x, y float64) float64 { return x - y })
}

// Ratios is Differences of a[i]/b[i].
func Ratios(a, b []float64) []float64 {
	return paired(a, b, func(x, y float64) float64 { return x / y })
}

// PercentAbove is Differences of by how many percent a[i] is above b[i].
func PercentAbove(a, b []float64) []float64 {
	return paired(a, b, func(x, y float64) float64 { return 100 * (x/y - 1) })
}

func paired(a, b []float64, of func(x, y float64) float64) []float64 {
	if len(a) != len(b) {
		panic("statistics: pairs of lists of unequal lengths")
	}
	values := make([]float64, len(a))
	for i := range a {
		values[i] = of(a[i], b[i])
	}
	return values
}
