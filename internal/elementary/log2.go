package elementary

import "math"

// Log2 returns the logarithm of x to the base 2: -Inf for a zero, NaN for anything less.
func Log2(x float32) float32 {
	switch {
	case x == 0:
		return float32(math.Inf(-1))
	case x > math.MaxFloat32:
		return x
	case !(x > 0):
		return nan32
	}
	return float32(log2(float64(x)))
}

// log2 returns the logarithm of a positive, normal, finite x to the base 2.
func log2(x float64) float64 {
	m, e := split(x)
	return e + float64(logNear1(m)*math.Log2E)
}
