package elementary

import "math"

// Beyond ±expLimit a result is 0 or infinite in float32 and is computed as if x
// were the limit.
const expLimit = 700

// The series of e**x: term2 is 1/2! and so on.
const (
	term2  = 1.0 / 2
	term3  = term2 / 3
	term4  = term3 / 4
	term5  = term4 / 5
	term6  = term5 / 6
	term7  = term6 / 7
	term8  = term7 / 8
	term9  = term8 / 9
	term10 = term9 / 10
	term11 = term10 / 11
)

// Exp returns e**x. Results beyond the range are +Inf or, through the
// subnormals, 0.
func Exp(x float32) float32 {
	if x != x {
		return nan32
	}
	return float32(exp(float64(x)))
}

// Pow returns x**y for a positive finite x, and NaN for any other. Its relative
// error is below 1e-13 for results between 1e-300 and 1e300.
func Pow(x, y float64) float64 {
	p := float64(y * log(x))
	if p != p {
		return nan64
	}
	return exp(p)
}

// exp returns e**x to a relative error of 2e-14. x is not NaN.
func exp(x float64) float64 {
	x = max(-expLimit, min(x, expLimit))
	n := math.Floor(float64(x*math.Log2E) + 0.5)
	scale := math.Float64frombits(uint64(int64(n)+1023) << 52)
	return float64(expNear0(x-float64(n*math.Ln2)) * scale)
}

// expNear0 returns the first 12 terms of the series of e**r, for |r| up to
// ln(2)/2. The even and the odd ones are two chains, which a CPU overlaps.
func expNear0(r float64) float64 {
	s := float64(r * r)
	even := float64(term10*s) + term8
	even = float64(even*s) + term6
	even = float64(even*s) + term4
	even = float64(even*s) + term2
	even = float64(even*s) + 1
	odd := float64(term11*s) + term9
	odd = float64(odd*s) + term7
	odd = float64(odd*s) + term5
	odd = float64(odd*s) + term3
	odd = float64(odd*s) + 1
	return even + float64(odd*r)
}
