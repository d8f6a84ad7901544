package oracle

import "math"

// fma32 returns x·y + z rounded once to float32, from the exact sum.
func fma32(x, y, z float32) float32 {
	if x == 0 || y == 0 || classOf(x) != finite || classOf(y) != finite || classOf(z) != finite {
		return float32(float64(x)*float64(y) + float64(z)) // exact but for the last rounding
	}
	mx, ex := split32(x)
	my, ey := split32(y)
	var sum accumulator
	product := fixed(mx*my, ex+ey)
	sum.add(0, product.significand, product.exponent, product.negative)
	sum.addFloat32(z)
	return math.Float32frombits(uint32(layout32.nearest(sum.number())))
}
