package quantizer

import (
	"fmt"
	"math"
)

// Random is what is known of codes that were rounded stochastically. Each of them is one of the
// two next to the scaled value, which was compared. Tests are of how often it is the one away
// from zero, which ought to be as likely as the dropped fraction of a step.
type Random struct {
	Rounded int     `json:"rounded"` // elements between two codes
	Rate    float64 `json:"rate"`    // at most so many honest results raise an alarm
	Away    float64 `json:"away"`    // share that was rounded away from zero
	Want    float64 `json:"want"`    // mean of the fractions
	Seen    float64 `json:"seen"`    // a bias of this probability is seen with 99 %
	Tests   int     `json:"tests"`
	Alarm   string  `json:"alarm,omitempty"`
	Blind   bool    `json:"blind,omitempty"` // even nearest rounding would not be seen
}

// randomRate is that of false alarms, of all tests together.
const randomRate = 1e-6

// statistics tests how codes were rounded.
func (j *job) statistics() *Random {
	const bins = 8
	type sum struct{ excess, variance, n float64 }
	var sums [bins + 5]sum
	names := [len(sums)]string{bins: "of all", bins + 1: "of positive values", bins + 2: "of negative values",
		bins + 3: "of neighbours in a row, which are not independent", bins + 4: "of neighbours in a column, which are not independent"}
	for n := range bins {
		names[n] = fmt.Sprintf("of fractions from %v to %v", float64(n)/bins, float64(n+1)/bins)
	}
	f := j.recipe.Format
	policy := j.recipe.EncodePolicy()
	r := &Random{Rate: randomRate}
	above := make([]float64, j.cols) // errors of the row above, over their deviation
	for i := range j.rows {
		left := 0.0
		for k := range j.cols {
			at := i*j.cols + k
			y := scaled(j.x[at], j.claimedScale(j.part.block(i, k)))
			was, up := left, above[k]
			left, above[k] = 0, 0
			if y-y != 0 || j.codeState[at] != right {
				continue
			}
			low, high := neighbours(y, f, policy)
			if low == high {
				continue
			}
			lo, hi := float64(abs(f.Float32(low))), float64(abs(f.Float32(high)))
			p := (float64(abs(y)) - lo) / (hi - lo)
			e := -p
			if j.codes[at] == high {
				e++
			}
			r.Rounded++
			r.Want += p
			r.Away += e + p
			v := p * (1 - p)
			add := func(n int, e, v float64) {
				sums[n].excess += e
				sums[n].variance += v
				sums[n].n++
			}
			add(min(int(p*bins), bins-1), e, v)
			add(bins, e, v)
			if y > 0 {
				add(bins+1, e, v)
			} else {
				add(bins+2, e, v)
			}
			if p > 0.05 && p < 0.95 {
				z := e / math.Sqrt(v)
				if was != 0 {
					add(bins+3, z*was, was*was)
				}
				if up != 0 {
					add(bins+4, z*up, up*up)
				}
				left, above[k] = z, z
			}
		}
	}
	r.Tests = len(sums)
	limit := math.Log(2 * float64(len(sums)) / randomRate)
	if r.Rounded > 0 {
		r.Away /= float64(r.Rounded)
		r.Want /= float64(r.Rounded)
	}
	all := sums[bins]
	r.Seen = 1
	if all.n > 0 {
		// That a biased sum is 2.33 deviations below its mean happens once in a hundred times.
		r.Seen = min(1, (bernstein(all.variance, limit, 1)+2.33*math.Sqrt(all.variance))/all.n)
	}
	r.Blind = r.Rounded > 0 && r.Seen > 0.25
	worst := 0.0
	for n, s := range sums {
		most := 1.0
		if n >= bins+3 {
			most = 19 // of products of two that are up to sqrt(0.95/0.05)
		}
		threshold := bernstein(s.variance, limit, most)
		if e := math.Abs(s.excess); s.n > 0 && e > threshold && e/threshold > worst {
			worst = e / threshold
			r.Alarm = fmt.Sprintf("%s, the sum of errors in steps is %.4g, and at most one in 10^6 honest results has more than %.4g", names[n], s.excess, threshold)
		}
	}
	return r
}

// bernstein is what a sum of errors, each at most so large and of mean 0 whatever those before,
// exceeds with a probability of at most 2*exp(-l): Freedman's inequality, which is Bernstein's
// where errors are independent.
func bernstein(variance, l, most float64) float64 {
	l3 := most * l / 3
	return l3 + math.Sqrt(l3*l3+2*l*variance)
}
