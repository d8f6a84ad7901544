package accumulation

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/statistics"
)

// deviation is how far results are from the exact ones. Where sums cancel a relative
// error has no bound, and the more results there are the larger is the largest; so it
// is taken from groups of a size.
type deviation struct {
	median   float64 // |error| / |exact|
	ofSixty  float64 // the largest of each 60 results; the median over groups
	bias     float64 // sum of errors / sum of |exact|, above 0 where results are too large
	root     float64 // root mean square of errors over that of exact results
	tooSmall float64 // share of results that are nearer to zero than the exact ones
}

const groupOf = 60

// deviationOf leaves out exact zeros, which have no relative error.
func deviationOf(got, exact []float32) (d deviation) {
	var relative []float64
	var errors, magnitudes, errorSquares, squares float64
	for i, want := range exact {
		magnitude := math.Abs(float64(want))
		if magnitude == 0 {
			continue
		}
		e := math.Copysign(1, float64(want)) * (float64(got[i]) - float64(want))
		relative = append(relative, math.Abs(e)/magnitude)
		if e < 0 {
			d.tooSmall++
		}
		errors += e
		magnitudes += magnitude
		errorSquares += e * e
		squares += magnitude * magnitude
	}
	d.tooSmall /= float64(len(relative))
	d.bias, d.root = errors/magnitudes, math.Sqrt(errorSquares/squares)
	d.ofSixty = statistics.Median(largestOfGroups(relative, groupOf))
	d.median = statistics.Median(relative)
	return d
}

// largestOfGroups returns the largest of each n values; a rest that is no group is
// left out.
func largestOfGroups(values []float64, n int) (largest []float64) {
	for ; len(values) >= n; values = values[n:] {
		largest = append(largest, slices.Max(values[:n]))
	}
	return largest
}
