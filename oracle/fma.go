package oracle

import "math"

// fma32 returns x·y + z rounded once to float32, from the exact sum.
func fma32(x, y, z float32) float32 {
	if x == 0 || y == 0 || classOf(x) != finite || classOf(y) != finite || classOf(z) != finite {
		return float32(float64(x)*float64(y) + float64(z)) // exact but for the last rounding
	}
	var sum twofold
	sum.addProduct(float64(x), float64(y)) // exact, since it has 48 bits
	sum.add(float64(z))
	b, _ := sum.bits(layout32)
	return math.Float32frombits(uint32(b))
}
