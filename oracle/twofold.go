package oracle

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/number"
)

// twofold is a sum of float64 in two parts, hi + lo, and a bound of what both have
// lost, which is 0 where they are exact (Dekker, "A floating-point technique for
// extending the available precision", 1971). It holds some 106 bits: enough to round
// nearly every sum correctly, and to know of the others.
type twofold struct{ hi, lo, lost float64 }

// add adds x.
func (t *twofold) add(x float64) {
	var rest float64
	t.hi, rest = number.TwoSum(t.hi, x)
	t.addLow(rest)
}

// addProduct adds x·y, whose rest must not be subnormal.
func (t *twofold) addProduct(x, y float64) {
	p := float64(x * y)
	rest := math.FMA(x, y, -p)
	t.add(p)
	if rest != 0 {
		t.addLow(rest)
	}
}

// addLow adds what is small beside the sum.
func (t *twofold) addLow(x float64) {
	var rest float64
	t.lo, rest = number.TwoSum(t.lo, x)
	t.lost += math.Abs(rest)
}

// parts returns the sum as its nearest float64 and a rest, and a bound of their error.
func (t *twofold) parts() (sum, rest, lost float64) {
	sum, rest = number.TwoSum(t.hi, t.lo)
	return sum, rest, float64(t.lost * (1 + 0x1p-20))
}

// bits returns the bits of the sum, rounded once to nearest, and whether they are sure.
// An exact zero is +0.
func (t *twofold) bits(l layout) (b uint64, sure bool) {
	x, sure := t.odd()
	if !sure {
		return 0, false
	}
	return roundSum(x, l), true
}

// odd returns the sum rounded to odd, and whether that is sure. It can be rounded again
// (Boldo and Melquiond, "When double rounding is odd", 2005).
func (t *twofold) odd() (x float64, sure bool) {
	sum, rest, lost := t.parts()
	if lost != 0 && math.Abs(rest) <= lost {
		return 0, false
	}
	odd := math.Float64bits(sum)
	if rest != 0 && odd&1 == 0 {
		if (rest > 0) == (sum > 0) {
			odd++
		} else {
			odd--
		}
	}
	return math.Float64frombits(odd), true
}

// float64 returns the sum rounded to nearest, and whether that is sure.
func (t *twofold) float64() (x float64, sure bool) {
	sum, rest, lost := t.parts()
	if lost == 0 {
		return sum, true
	}
	lost += float64(math.Abs(rest) * 0x1p-50)
	return sum, sum+(rest+lost) == sum && sum+(rest-lost) == sum
}
