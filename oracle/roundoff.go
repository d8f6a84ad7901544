package oracle

import "math"

// Bounds are computed in float64 rounded to nearest, from terms that are not
// negative. So is every step of their computation off by a factor of at most
// 1 + 2^-53, and a result of n steps is brought above the true bound by raise.

// raise returns an upper bound of what x approximates after n operations.
func raise(x float64, n int) float64 { return float64(x * (1 + float64(n+2)*0x1p-52)) }

// gamma is γ_n = nu/(1-nu) of Higham, "Accuracy and Stability of Numerical
// Algorithms", section 3.1: the relative error of n roundings; infinite where
// the theorem says nothing.
func gamma(n int, u float64) float64 {
	nu := float64(n) * u
	if nu >= 1 {
		return math.Inf(1)
	}
	return nu / (1 - nu)
}

// unitRoundoff is half the distance from 1 to the next number of l.
func (l layout) unitRoundoff() float64 { return power2(-l.fraction - 1) }

// leastHalf is half of l's least subnormal.
func (l layout) leastHalf() float64 { return power2(l.minExponent() - l.fraction - 1) }

// overflow is the least magnitude that is rounded to infinity.
func (l layout) overflow() float64 {
	return power2(l.bias+1) * (1 - power2(-l.fraction-2))
}

// rounding bounds the error of rounding a number of magnitude up to x to
// nearest.
func (l layout) rounding(x float64) float64 {
	if x >= l.overflow() {
		return math.Inf(1)
	}
	return max(l.unitRoundoff()*x, l.leastHalf())
}

// orInf returns x, or infinity where it is a NaN, as infinity times zero is.
func orInf(x float64) float64 {
	if x != x {
		return math.Inf(1)
	}
	return x
}
