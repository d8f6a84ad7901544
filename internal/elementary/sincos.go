package elementary

import "math"

// SinCosLimit is the largest magnitude that [SinCos] takes.
const SinCosLimit = 1e6

// SinCos returns the sine and the cosine of x, in radians, to an absolute error
// of 1e-15. Both are NaN where |x| is beyond [SinCosLimit] or not a number.
func SinCos(x float64) (sin, cos float64) {
	if !(math.Abs(x) <= SinCosLimit) {
		return nan64, nan64
	}
	// π/2 in three parts, the first two so short that their products with n are
	// exact (Cody & Waite 1980).
	const (
		part1 = 0x3FF921FB40000000
		part2 = 0x3E74442D00000000
		part3 = 0x3CF8469898CC5170
	)
	n := math.Floor(float64(x*(2/math.Pi)) + 0.5)
	r := x - float64(n*math.Float64frombits(part1))
	r -= float64(n * math.Float64frombits(part2))
	r -= float64(n * math.Float64frombits(part3))
	s, c := sinCosNear0(r)
	switch int64(n) & 3 {
	case 1:
		return c, -s
	case 2:
		return -s, -c
	case 3:
		return -c, s
	}
	return s, c
}

// sinCosNear0 sums the series of both functions for |r| up to π/4.
func sinCosNear0(r float64) (sin, cos float64) {
	const (
		c2  = -1.0 / 2
		c3  = c2 / 3
		c4  = -c3 / 4
		c5  = c4 / 5
		c6  = -c5 / 6
		c7  = c6 / 7
		c8  = -c7 / 8
		c9  = c8 / 9
		c10 = -c9 / 10
		c11 = c10 / 11
		c12 = -c11 / 12
		c13 = c12 / 13
		c14 = -c13 / 14
		c15 = c14 / 15
		c16 = -c15 / 16
	)
	z := float64(r * r)
	sin = float64(z*c15) + c13
	sin = float64(sin*z) + c11
	sin = float64(sin*z) + c9
	sin = float64(sin*z) + c7
	sin = float64(sin*z) + c5
	sin = float64(sin*z) + c3
	sin = r + float64(float64(sin*z)*r)
	cos = float64(z*c16) + c14
	cos = float64(cos*z) + c12
	cos = float64(cos*z) + c10
	cos = float64(cos*z) + c8
	cos = float64(cos*z) + c6
	cos = float64(cos*z) + c4
	cos = float64(cos*z) + c2
	cos = float64(cos*z) + 1
	return sin, cos
}
