package statistics

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
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

// Plan is a sample of n independent normal values of a mean and a standard deviation, judged
// by the interval of their mean, one of so many in a family.
type Plan struct {
	Sample   int
	Family   int
	Mean, SD float64
}

// Power returns the chance that the whole interval is between two limits, of which one may
// be infinite. It is exact: with one limit the tail of the noncentral t distribution, with
// two what two one-sided tests (TOST) reach together. For each standard deviation that the
// sample may have, the mean, which is independent of it, has to be that far inside the
// limits; the chances are averaged over the standard deviation's distribution.
func (p Plan) Power(lower, upper float64) float64 {
	if p.Sample < 2 {
		return 0
	}
	if p.SD == 0 {
		if lower < p.Mean && p.Mean < upper {
			return 1
		}
		return 0
	}
	degrees := float64(p.Sample - 1)
	squares := distuv.ChiSquared{K: degrees}
	ofMean := p.SD / math.Sqrt(float64(p.Sample))
	k := StandardErrors(p.Sample, p.Family)
	at := func(u float64) float64 {
		half := k * math.Sqrt(squares.Quantile(u)/degrees)
		high := distuv.UnitNormal.CDF((upper-p.Mean)/ofMean - half)
		low := distuv.UnitNormal.CDF((lower-p.Mean)/ofMean + half)
		return max(0, high-low)
	}
	const points = 400
	return quad.Fixed(at, 0, 1, points, quad.Legendre{}, 0)
}
