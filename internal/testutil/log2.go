package testutil

import "math/big"

// ExactLog2 is log2 x, for x > 0, rounded to the nearest float32: its bits come
// one by one from squaring, in big arithmetic.
func ExactLog2(x float32) float32 {
	const fractionBits, precision = 64, 400
	mantissa := new(big.Float).SetPrec(precision)
	exponent := new(big.Float).SetFloat64(float64(x)).MantExp(mantissa) - 1
	mantissa.SetMantExp(mantissa, 1) // in [1, 2)
	fraction, two := uint64(0), big.NewFloat(2)
	power := mantissa.Cmp(big.NewFloat(1)) == 0
	for range fractionBits {
		mantissa.Mul(mantissa, mantissa)
		fraction <<= 1
		if mantissa.Cmp(two) >= 0 {
			mantissa.SetMantExp(mantissa, -1)
			fraction |= 1
		}
	}
	y := new(big.Float).SetPrec(precision).SetUint64(fraction)
	if !power { // what follows those bits is not zero
		y.Add(y, big.NewFloat(0.5))
	}
	y.SetMantExp(y, -fractionBits)
	rounded, _ := y.Add(y, new(big.Float).SetInt64(int64(exponent))).Float32()
	return rounded
}
