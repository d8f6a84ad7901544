package elementary

import "math"

// Log returns the natural logarithm of x: -Inf for a zero, NaN for anything
// less.
func Log(x float32) float32 {
	switch {
	case x == 0:
		return float32(math.Inf(-1))
	case x > math.MaxFloat32:
		return x
	case !(x > 0):
		return nan32
	}
	return float32(log(float64(x)))
}

// Log64 is [Log] of a float64 that is positive, normal and finite, to a relative error of 1e-14;
// of any other it is NaN.
func Log64(x float64) float64 { return log(x) }

// log returns the natural logarithm of a positive, normal, finite x to a
// relative error of 1e-14, and NaN for any other.
func log(x float64) float64 {
	if !(x >= 0x1p-1022 && x <= math.MaxFloat64) {
		return nan64
	}
	m, e := split(x)
	return float64(e*math.Ln2) + logNear1(m)
}

// split returns m and e with x = m·2**e, m between √½ and √2, for a positive normal x.
func split(x float64) (m, e float64) {
	const fraction = 1<<52 - 1
	bits := math.Float64bits(x)
	n := int64(bits>>52) - 1023
	m = math.Float64frombits(bits&fraction | 1023<<52)
	if m > math.Sqrt2 {
		m /= 2
		n++
	}
	return m, float64(n)
}

// logNear1 returns the first 9 terms of ln(m) = 2·artanh(s), s = (m-1)/(m+1), for
// m between √½ and √2.
func logNear1(m float64) float64 {
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	p := float64(z*(2.0/17)) + 2.0/15
	p = float64(p*z) + 2.0/13
	p = float64(p*z) + 2.0/11
	p = float64(p*z) + 2.0/9
	p = float64(p*z) + 2.0/7
	p = float64(p*z) + 2.0/5
	p = float64(p*z) + 2.0/3
	p = float64(p*z) + 2
	return float64(p * s)
}
