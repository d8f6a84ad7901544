package lab

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

func mean(values []float64) float64 { return stat.Mean(values, nil) }

// spread returns the standard deviation of values, and that of their mean if they
// are independent.
func spread(values []float64) (deviation, ofMean float64) {
	deviation = stat.StdDev(values, nil)
	return deviation, deviation / math.Sqrt(float64(len(values)))
}

// median returns the value in the middle, or the mean of the two that are there.
func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}
