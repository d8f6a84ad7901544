package flash

import (
	"math"
	"math/big"

	"github.com/octavo-fp8/octavo/internal/number"
)

// twofold is the sum of two float64, the second at most half a unit in the last place of
// the first: some 106 bits. Errors of its operations, relative to their results, are those
// of Joldes, Muller and Popescu, "Tight and rigorous error bounds for basic building blocks
// of double-word arithmetic", ACM TOMS 44(2), 2017: below 2^-103 here.
type twofold struct{ hi, lo float64 }

func fastTwoSum(a, b float64) twofold {
	sum := a + b
	return twofold{sum, b - (sum - a)}
}

func (x twofold) plus(y twofold) twofold {
	s, e := number.TwoSum(x.hi, y.hi)
	t, f := number.TwoSum(x.lo, y.lo)
	v := fastTwoSum(s, e+t)
	return fastTwoSum(v.hi, f+v.lo)
}

func (x twofold) plusFloat(y float64) twofold {
	s, e := number.TwoSum(x.hi, y)
	return fastTwoSum(s, x.lo+e)
}

func (x twofold) times(y twofold) twofold {
	p, e := twoProduct(x.hi, y.hi)
	return fastTwoSum(p, e+math.FMA(x.hi, y.lo, math.FMA(x.lo, y.hi, float64(x.lo*y.lo))))
}

func (x twofold) timesFloat(y float64) twofold {
	p, e := twoProduct(x.hi, y)
	return fastTwoSum(p, math.FMA(x.lo, y, e))
}

func (x twofold) over(y twofold) twofold {
	q := x.hi / y.hi
	p := y.timesFloat(q)
	rest := (x.hi - p.hi) + (x.lo - p.lo)
	return fastTwoSum(q, rest/y.hi)
}

func (x twofold) overFloat(y float64) twofold {
	q := x.hi / y
	p, e := twoProduct(q, y)
	return fastTwoSum(q, ((x.hi-p)-e+x.lo)/y)
}

// scaled is x·2^n; nothing is lost above 2^-900.
func (x twofold) scaled(n int) twofold { return twofold{math.Ldexp(x.hi, n), math.Ldexp(x.lo, n)} }

// ln2Parts are the bits of ln 2: 40, 40 and 53 of them, so that the first two times a whole
// number below 2^13 are exact.
var ln2Parts = func() (parts [3]float64) {
	rest := bigLn2(256)
	for i, bits := range []uint{40, 40, 53} {
		part := new(big.Float).SetPrec(bits).SetMode(big.ToZero).Set(rest)
		parts[i], _ = part.Float64()
		rest.Sub(rest, part)
	}
	return parts
}()

// expError is more than the relative error of exp, which is below 2^-97: nine squarings,
// each adding 2^-103 to that of e^r-1, and a series that is cut where terms are below
// 2^-116 of it.
const expError = 0x1p-94

// exp returns e^x for x from -800 to 800.
func (x twofold) exp() twofold {
	const halvings = 9
	k := math.RoundToEven(x.hi * math.Log2E)
	r := x
	for _, part := range ln2Parts {
		r = r.plusFloat(float64(-k * part))
	}
	r = r.scaled(-halvings)
	tail := 1.0
	for i := 9.0; i > 5; i-- {
		tail = 1 + tail*r.hi/i
	}
	sum := twofold{tail, 0}
	for i := 5.0; i > 1; i-- {
		sum = sum.times(r).overFloat(i).plusFloat(1)
	}
	less1 := sum.times(r)
	for range halvings {
		less1 = less1.times(less1).plus(twofold{2 * less1.hi, 2 * less1.lo})
	}
	return less1.plusFloat(1).scaled(int(k))
}

// log returns the logarithm of x from 2^-900 to 2^900, to an absolute error below
// 2·expError: one step of Newton's method, whose own error is the cube of 2^-50.
func (x twofold) log() twofold {
	y := math.Log(x.hi)
	e := x.times(twofold{-y, 0}.exp()).plusFloat(-1)
	return e.times(e).timesFloat(-0.5).plus(e).plusFloat(y)
}
