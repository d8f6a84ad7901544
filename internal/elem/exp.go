package elem

import "math"

// Beyond ±expLimit a result is 0 or infinite in float32 and is computed as if x
// were the limit.
const expLimit = 700

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
	const (
		c2  = 1.0 / 2
		c3  = c2 / 3
		c4  = c3 / 4
		c5  = c4 / 5
		c6  = c5 / 6
		c7  = c6 / 7
		c8  = c7 / 8
		c9  = c8 / 9
		c10 = c9 / 10
		c11 = c10 / 11
	)
	s := float64(r * r)
	even := float64(c10*s) + c8
	even = float64(even*s) + c6
	even = float64(even*s) + c4
	even = float64(even*s) + c2
	even = float64(even*s) + 1
	odd := float64(c11*s) + c9
	odd = float64(odd*s) + c7
	odd = float64(odd*s) + c5
	odd = float64(odd*s) + c3
	odd = float64(odd*s) + 1
	return even + float64(odd*r)
}
