// Package statistics sums up what the experiments of octavo lab measured.
package statistics

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Mean returns the mean.
func Mean(values []float64) float64 { return stat.Mean(values, nil) }

// Each returns a figure of each sample, such as one of each seed.
func Each[S any](samples []S, figure func(S) float64) (values []float64) {
	for _, s := range samples {
		values = append(values, figure(s))
	}
	return values
}

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
