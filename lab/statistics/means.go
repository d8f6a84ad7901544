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
func Each[S, V any](samples []S, figure func(S) V) (values []V) {
	for _, s := range samples {
		values = append(values, figure(s))
	}
	return values
}

// Most returns the largest figure of the samples, at least 0.
func Most[S any](samples []S, figure func(S) float64) (most float64) {
	for _, s := range samples {
		most = max(most, figure(s))
	}
	return most
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

// Quantile returns the value below which a share of sorted values lies, between
// two of them in proportion; 0 if there are none.
func Quantile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at := share * float64(len(sorted)-1)
	below := min(int(at), len(sorted)-1)
	above := min(below+1, len(sorted)-1)
	part := at - float64(below)
	return float64(sorted[below]*(1-part)) + float64(sorted[above]*part)
}

// ShareAbove returns which share of sorted values is above a limit; 0 if there are
// none.
func ShareAbove(sorted []float64, limit float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	at, found := slices.BinarySearch(sorted, limit)
	for found && at < len(sorted) && sorted[at] == limit {
		at++
	}
	return float64(len(sorted)-at) / float64(len(sorted))
}
