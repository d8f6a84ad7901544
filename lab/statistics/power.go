package statistics

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

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
