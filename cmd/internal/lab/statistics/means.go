// Package statistics sums up what the experiments of octavo lab measured.
package statistics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Mean returns the mean.
func Mean(values []float64) float64 { return stat.Mean(values, nil) }

// Spread returns the standard deviation of values, and that of their mean if they
// are independent.
func Spread(values []float64) (deviation, ofMean float64) {
	deviation = stat.StdDev(values, nil)
	return deviation, deviation / math.Sqrt(float64(len(values)))
}

// ByChance returns the probability that the mean of n independent normal values, of which
// the true mean is 0, is more than so many of its standard errors away from 0 (Student's t).
// The number of values is at least 2.
func ByChance(n int, standardErrors float64) float64 {
	t := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}
	return 2 * t.Survival(standardErrors)
}

// Median returns the value in the middle, or the mean of the two that are there.
func Median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}
