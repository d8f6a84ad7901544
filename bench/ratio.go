package bench

import (
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// confidence is that of the interval of a [Ratio].
const confidence = 0.95

// Ratio is what the ratios of pairs of measurements have in common: their median, and
// an interval of order statistics. It would hold the median of all pairs that could have
// been measured with a probability of 95%, whatever their distribution is, if pairs were
// independent and their number chosen before. Neighbouring rounds are not quite, and a
// comparison ends once its intervals are narrow: it is 92% to 94% then. What differs
// between runs is not in it.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Pairs  int     `json:"pairs"`
}

// leastPairs are what an interval of that confidence takes: of fewer, [Ratio] has the
// least and the greatest.
const leastPairs = 6

// newRatio returns the ratio of pairs, of which there is at least one.
func newRatio(pairs []float64) Ratio {
	x := slices.Sorted(slices.Values(pairs))
	n := len(x)
	cut := outside(n)
	return Ratio{Median: (x[(n-1)/2] + x[n/2]) / 2, Low: x[cut], High: x[n-1-cut], Pairs: n}
}

// outside returns how many of n sorted values may be left out at either end while the
// others still hold the median with the confidence. The interval from value number cut
// on misses it if at most cut values are below it, each of which is as a coin falls.
func outside(n int) int {
	coins := distuv.Binomial{N: float64(n), P: 0.5}
	cut := 0
	for coins.CDF(float64(cut+1)) <= (1-confidence)/2 {
		cut++
	}
	return cut
}

// Spread returns half of the interval, relative to the median.
func (r Ratio) Spread() float64 { return (r.High - r.Low) / 2 / r.Median }

// Known reports whether there are enough pairs for the interval to mean what it says.
func (r Ratio) Known() bool { return r.Pairs >= leastPairs }
