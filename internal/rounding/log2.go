package rounding

import "math"

// Exp2FloorLog2 returns 2^floor(y), where y is log2 x rounded to the nearest
// float32. x must be finite and at least 0, or NaN, which it then returns.
//
// Rounding carries y up to an integer n where x is only just below 2^n. With x =
// 2^n * (1 - d), that is where -log2(1-d) is less than half the distance h from n
// to the float32 before it: d < h/2 * ln 2, since d is too small for its square
// to matter. Everywhere else 2^floor(y) is the power of two in x.
func Exp2FloorLog2(x float32) float32 {
	if !(x > 0) {
		return x
	}
	fraction, n := math.Frexp(float64(x)) // x = fraction * 2^n, fraction in [1/2, 1)
	y := float32(n)
	before := math.Nextafter32(y, float32(math.Inf(-1)))
	if 1-fraction >= float64(y-before)/2*math.Ln2 {
		n--
	}
	return float32(math.Ldexp(1, n))
}

// Exp2CeilLog2 returns 2^ceil(y), where y is log2 x rounded to the nearest float32, as
// E8M0 holds it: from 2^-127 to 2^127. x must be at least 0.
//
// Rounding carries y down to an integer n where x is only just above 2^n, which
// [Exp2FloorLog2] explains: where x = 2^n * (1 + d) and d < h/2 * ln 2, h being the
// distance from n to the float32 after it.
func Exp2CeilLog2(x float32) float32 {
	switch {
	case x <= 0x1p-127:
		return 0x1p-127
	case x >= 0x1p127:
		return 0x1p127
	}
	fraction, n := math.Frexp(float64(x)) // x = fraction * 2^n, fraction in [1/2, 1)
	y := float32(n - 1)
	after := math.Nextafter32(y, float32(math.Inf(1)))
	if 2*fraction-1 <= float64(after-y)/2*math.Ln2 {
		n--
	}
	return float32(math.Ldexp(1, n))
}
