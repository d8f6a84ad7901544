package flash

import (
	"math"
	"math/big"
)

// margin is more than the relative error of near0 and log2Near, which is below 2^-50: some
// ten roundings, and a series that is cut where terms are below 2^-57.
const margin = 0x1p-48

// exp2Rounded returns 2^x, correctly rounded.
//
// It is computed in float64 with an error that is far below margin. Where both ends of the
// interval round to one float32, that is the result; elsewhere precision grows until they
// do. They do for some precision: 2^x is irrational unless x is an integer.
func exp2Rounded(x float32) float32 {
	switch {
	case x != x:
		return nan32
	case x >= 128:
		return float32(math.Inf(1))
	case x <= -150:
		return 0
	}
	n := math.RoundToEven(float64(x))
	r := float64(x) - n
	if r == 0 {
		return float32(math.Ldexp(1, int(n)))
	}
	y := math.Ldexp(near0(r*math.Ln2), int(n))
	low, high := float32(y*(1-margin)), float32(y*(1+margin))
	if low == high {
		return low
	}
	return exp2Big(x)
}

// near0 is e^t for |t| up to 0.35.
func near0(t float64) float64 {
	sum := 1.0
	for i := 14.0; i > 0; i-- {
		sum = 1 + sum*t/i
	}
	return sum
}

func exp2Big(x float32) float32 {
	n := math.RoundToEven(float64(x))
	for prec := uint(64); ; prec *= 2 {
		t := new(big.Float).SetPrec(prec + 64).SetFloat64(float64(x) - n)
		t.Mul(t, bigLn2(prec+64))
		y := bigExp(t, prec)
		y.SetMantExp(y, int(n))
		low, high := bigInterval(y, prec)
		a, _ := low.Float32()
		if b, _ := high.Float32(); a == b {
			return a
		}
	}
}

// bigInterval returns y less and plus 2^-prec of it, rounded outward by more than rounding
// can take away.
func bigInterval(y *big.Float, prec uint) (low, high *big.Float) {
	width := new(big.Float).SetMantExp(y, -int(prec))
	width.Abs(width)
	return new(big.Float).SetPrec(prec+64).Sub(y, width), new(big.Float).SetPrec(prec+64).Add(y, width)
}

// log2Rounded returns log2(x), correctly rounded, and -Inf for 0. The argument is that of
// exp2Rounded: log2(x) is irrational unless x is a power of 2.
func log2Rounded(x float32) float32 {
	switch {
	case x != x || x < 0:
		return nan32
	case x == 0:
		return float32(math.Inf(-1))
	case math.IsInf(float64(x), 1):
		return x
	}
	m, e := math.Frexp(float64(x))
	if m == 0.5 {
		return float32(e - 1)
	}
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	y := float64(e) + log2Near(m)
	low, high := float32(y*(1-margin)), float32(y*(1+margin))
	if low == high {
		return low
	}
	return log2Big(x, y)
}

// log2Near is log2(m) for m from 0.7 to 1.42: 2·artanh((m-1)/(m+1))/ln 2.
func log2Near(m float64) float64 {
	s := (m - 1) / (m + 1)
	square := s * s
	sum := 0.0
	for i := 27.0; i > 0; i -= 2 {
		sum = 1/i + sum*square
	}
	return 2 / math.Ln2 * s * sum
}

// log2Big improves y, which is log2(x) to 2^-40 of it, by Newton's method.
func log2Big(x float32, y float64) float32 {
	for prec := uint(128); ; prec *= 2 {
		work := prec + 128
		l := new(big.Float).SetPrec(work).SetFloat64(y)
		l.Mul(l, bigLn2(work))
		for right := uint(30); right < prec+16; right *= 2 {
			e := bigExp(new(big.Float).Neg(l), work-32)
			e.Mul(e, big.NewFloat(float64(x)))
			l.Add(l, e.Sub(e, big.NewFloat(1)))
		}
		l.Quo(l, bigLn2(work))
		low, high := bigInterval(l, prec)
		a, _ := low.Float32()
		if b, _ := high.Float32(); a == b {
			return a
		}
	}
}

// bigExp returns e^x to a relative error below 2^-prec, for |x| below 2^30.
func bigExp(x *big.Float, prec uint) *big.Float {
	const halvings = 8
	work := prec + 64
	if x.Sign() == 0 {
		return new(big.Float).SetPrec(work).SetInt64(1)
	}
	ln2 := bigLn2(work + 64)
	q, _ := new(big.Float).SetPrec(64).Quo(x, ln2).Float64()
	n := int(math.RoundToEven(q))
	r := new(big.Float).SetPrec(work+64).Mul(ln2, new(big.Float).SetInt64(int64(n)))
	r.Sub(new(big.Float).SetPrec(max(x.Prec(), work+64)).Set(x), r)
	r.SetPrec(work).SetMantExp(r, -halvings)
	sum := new(big.Float).SetPrec(work).SetInt64(1)
	term := new(big.Float).SetPrec(work).SetInt64(1)
	for i := int64(1); ; i++ {
		term.Mul(term, r)
		if term.Sign() == 0 || term.MantExp(nil) < -int(work) {
			break
		}
		term.Quo(term, new(big.Float).SetInt64(i))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum.SetMantExp(sum, n)
}

// bigLn2 is ln 2 = 2·artanh(1/3), to a relative error below 2^-prec.
func bigLn2(prec uint) *big.Float {
	work := prec + 32
	power := new(big.Float).SetPrec(work).Quo(big.NewFloat(2), big.NewFloat(3).SetPrec(work))
	nine := big.NewFloat(9)
	sum := new(big.Float).SetPrec(work)
	for i := int64(1); power.MantExp(nil) > -int(work); i += 2 {
		sum.Add(sum, new(big.Float).SetPrec(work).Quo(power, new(big.Float).SetInt64(i)))
		power.Quo(power, nine)
	}
	return sum
}
