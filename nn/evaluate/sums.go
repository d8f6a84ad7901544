package evaluate

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
)

// sums are those of a quantity over the targets of each window.
type sums struct {
	values []float64
	counts []int
}

func (s *sums) add(sum float64, count int) {
	s.values, s.counts = append(s.values, sum), append(s.counts, count)
}

// mean returns the mean over all targets and its standard error, as the documentation of the
// package says.
func (s *sums) mean() Mean {
	total, n := 0.0, 0
	for i, v := range s.values {
		total += v
		n += s.counts[i]
	}
	mean := total / float64(n)
	squares := 0.0
	for i, v := range s.values {
		d := v - float64(mean*float64(s.counts[i]))
		squares += float64(d * d)
	}
	w := float64(len(s.values))
	variance := float64(w/(w-1)) * squares
	if len(s.values) < 2 {
		variance = math.NaN()
	}
	return Mean{jsonfloat.Number(mean), jsonfloat.Number(math.Sqrt(variance) / float64(n))}
}
