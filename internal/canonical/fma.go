package canonical

import "math"

// FMA returns x*y + z rounded once to float32.
//
// The product is exact in float64; the sum is rounded there to odd, which keeps
// what the second rounding needs to know (Boldo and Melquiond, "Emulation of
// FMA and correctly rounded sums", IEEE Transactions on Computers 57(4), 2008).
func FMA(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	sum := p + c
	// Knuth's TwoSum: sum + rest is p + c exactly. It is NaN where sum is not
	// finite, and then there is nothing to mend.
	t := sum - p
	rest := (p - (sum - t)) + (c - t)
	bits := math.Float64bits(sum)
	if rest != 0 && rest == rest && bits&1 == 0 {
		if (rest > 0) == (sum > 0) {
			bits++
		} else {
			bits--
		}
		sum = math.Float64frombits(bits)
	}
	return float32(sum)
}
