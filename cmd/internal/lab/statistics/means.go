// Package statistics sums up what the experiments of octavo lab measured.
package statistics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Mean returns the mean.
func Mean(values []float64) float64 { return stat.Mean(values, nil) }

// Spread returns the standard deviation of values, and that of their mean if they
// are independent.
func Spread(values []float64) (deviation, ofMean float64) {
	deviation = stat.StdDev(values, nil)
	return deviation, deviation / math.Sqrt(float64(len(values)))
}

// Median returns the value in the middle, or the mean of the two that are there.
func Median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}
