package flash

import (
	"math"
	"math/big"

	"github.com/octavo-fp8/octavo/internal/number"
)

var nan32 = math.Float32frombits(0x7FC00000)

// exactBits is the precision in which sums of products of two or three float32 are exact:
// they are from 2^-447 to 2^384 in magnitude, and there are fewer than 2^31 of them.
const exactBits = 1024

// roundSum returns the sum of the terms, each a product of two float32, rounded once. A sum
// of zero is +0.
func roundSum(terms []float64) float32 { return roundScaled(terms, 1) }

// roundScaled returns the sum of the terms times c, rounded once.
func roundScaled(terms []float64, c float32) float32 {
	sum, rest, exact := addUp(terms)
	switch {
	case !number.IsFinite(sum):
		return number.Canonical(float32(plainSum(terms) * float64(c)))
	case !exact:
		return roundBig(terms, c)
	case c == 1:
		return roundPair(sum, rest)
	}
	high, low := twoProduct(sum, float64(c))
	if rest == 0 {
		return roundPair(high, low)
	}
	high2, low2 := twoProduct(rest, float64(c))
	return roundSum([]float64{high, low, high2, low2})
}

// plainSum is right about what is not finite.
func plainSum(terms []float64) (sum float64) {
	for _, t := range terms {
		sum += t
	}
	return sum
}

// addUp returns the sum of the terms as that of two numbers of which the second is at most
// half a unit in the last place of the first, unless it says that this is not exact.
func addUp(terms []float64) (sum, rest float64, exact bool) {
	exact = true
	for _, t := range terms {
		var e, lost float64
		sum, e = number.TwoSum(sum, t)
		rest, lost = number.TwoSum(rest, e)
		if lost != 0 {
			exact = false
		}
	}
	sum, rest = number.TwoSum(sum, rest)
	return sum, rest, exact
}

func roundBig(terms []float64, c float32) float32 {
	sum := new(big.Float).SetPrec(exactBits)
	for _, t := range terms {
		sum.Add(sum, big.NewFloat(t))
	}
	sum.Mul(sum, big.NewFloat(float64(c)))
	if sum.Sign() == 0 {
		return 0
	}
	r, _ := sum.Float32()
	return r
}

// twoProduct returns a·b rounded, and what that lost. It is exact unless the second is
// below 2^-1074.
func twoProduct(a, b float64) (product, rest float64) {
	product = float64(a * b)
	return product, math.FMA(a, b, -product)
}

// roundPair rounds high+low, of which low is at most half a unit in the last place of
// high, to float32 once: the sum is rounded to odd in float64 before, which keeps what the
// second rounding needs to know (Boldo and Melquiond).
func roundPair(high, low float64) float32 {
	if high == 0 {
		return float32(low)
	}
	bits := math.Float64bits(high)
	if low != 0 && bits&1 == 0 {
		if (low > 0) == (high > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}
