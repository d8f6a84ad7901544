package flash

import (
	"math"
	"math/big"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/number"
)

// Output is the types to which [Exact] rounds.
type Output interface {
	float32 | float64 | fp8.BFloat16
}

// roundTo rounds high+low once; low is at most half a unit in the last place of high.
func roundTo[T Output](high, low float64) (r T) {
	switch r := any(&r).(type) {
	case *float64:
		*r = high
	case *float32:
		*r = roundPair(high, low)
	case *fp8.BFloat16:
		*r = roundBFloat16(high, low)
	}
	return r
}

// roundBFloat16 rounds to odd in float32 before, for the reason that roundPair has.
func roundBFloat16(high, low float64) fp8.BFloat16 {
	if high == 0 {
		high, low = low, 0
	}
	x := math.Abs(high)
	if high < 0 {
		low = -low
	}
	f := float32(x)
	if float64(f) > x || float64(f) == x && low < 0 {
		f = math.Nextafter32(f, 0)
	}
	if float64(f) != x || low != 0 {
		f = math.Float32frombits(math.Float32bits(f) | 1)
	}
	if math.IsInf(x, 1) || x != x {
		f = float32(x)
	}
	return fp8.BFloat16FromFloat32(float32(math.Copysign(float64(f), high)))
}

// keyOf numbers the numbers of T from the least to the largest: -0 is -1, +0 is 0.
func keyOf[T Output](x T) int64 {
	var bits, sign uint64
	switch x := any(x).(type) {
	case float64:
		bits, sign = math.Float64bits(x), 1<<63
	case float32:
		bits, sign = uint64(math.Float32bits(x)), 1<<31
	case fp8.BFloat16:
		bits, sign = uint64(x), 1<<15
	}
	if bits&sign != 0 {
		return -int64(bits&^sign) - 1
	}
	return int64(bits)
}

func fromKey[T Output](key int64) (x T) {
	magnitude, negative := uint64(key), key < 0
	if negative {
		magnitude = uint64(-(key + 1))
	}
	switch x := any(&x).(type) {
	case *float64:
		*x = math.Float64frombits(magnitude | flag(negative)<<63)
	case *float32:
		*x = math.Float32frombits(uint32(magnitude | flag(negative)<<31))
	case *fp8.BFloat16:
		*x = fp8.BFloat16(magnitude | flag(negative)<<15)
	}
	return x
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// ratOf is the value of the number of that key; an infinity counts as the power of 2 that
// would be the next number.
func ratOf[T Output](key int64) *big.Rat {
	x := fromKey[T](key)
	f := number.Float64(x)
	if !math.IsInf(f, 0) {
		return new(big.Rat).SetFloat64(f)
	}
	step := int64(1)
	if key < 0 {
		step = -1
	}
	last, before := ratOf[T](key-step), ratOf[T](key-2*step)
	return last.Add(last, new(big.Rat).Sub(last, before))
}

// specialTo is a number that is not finite as a T; a NaN is the canonical one.
func specialTo[T Output](x float64) (r T) {
	switch r := any(&r).(type) {
	case *float64:
		if *r = x; x != x {
			*r = math.Float64frombits(0x7FF8000000000000)
		}
	case *float32:
		*r = number.Canonical(float32(x))
	case *fp8.BFloat16:
		*r = fp8.BFloat16FromFloat32(number.Canonical(float32(x)))
	}
	return r
}

// around rounds both ends of the interval x ± err, and says whether they agree.
func around[T Output](x twofold, err float64) (low, high T, sure bool) {
	err = err*(1+0x1p-20) + math.Abs(x.hi)*0x1p-104
	if x == (twofold{}) && err == 0 {
		return low, high, true
	}
	low = roundTo[T](number.TwoSum(x.hi, x.lo-err))
	high = roundTo[T](number.TwoSum(x.hi, x.lo+err))
	return low, high, keyOf(low) == keyOf(high)
}
