package fp8

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/enum"
)

// E8M0 is a scale of the OCP Microscaling formats: 2^(b-127), and NaN for FF.
// It has neither sign nor zero nor infinity.
type E8M0 uint8

const (
	E8M0NaN E8M0 = 0xFF // the scale that makes every value of its block NaN
	e8m0Max E8M0 = 0xFE // 2^127
)

// Float32 returns the value of e, exactly; 2^-127 is a subnormal float32.
func (e E8M0) Float32() float32 {
	switch e {
	case E8M0NaN:
		return math.Float32frombits(positiveNaN)
	case 0:
		return math.Float32frombits(1 << 22)
	}
	return math.Float32frombits(uint32(e) << 23)
}

// E8M0FromFloat32 returns the E8M0 whose value is x, which must be NaN or a
// power of two from 2^-127 to 2^127; ok is false for any other x.
func E8M0FromFloat32(x float32) (e E8M0, ok bool) {
	if x != x {
		return E8M0NaN, true
	}
	e = E8M0(math.Float32bits(x) >> 23)
	return e, e != E8M0NaN && e.Float32() == x
}

// E8M0Rounding is how a value between two powers of two becomes an [E8M0].
type E8M0Rounding uint8

const (
	E8M0Down    E8M0Rounding = iota // the power of two below: the value's exponent
	E8M0Up                          // the power of two above
	E8M0Nearest                     // the nearer power of two; 1.5 times one gives the one above
)

var e8m0Roundings = enum.Enum[E8M0Rounding]{Type: "E8M0Rounding", What: "rounding to E8M0", Names: []string{"down", "up", "nearest"}, Err: ErrPolicy, Prefix: "fp8"}

// String returns the text of r, such as "down".
func (r E8M0Rounding) String() string                   { return e8m0Roundings.String(r) }
func (r E8M0Rounding) MarshalText() ([]byte, error)     { return e8m0Roundings.MarshalText(r) }
func (r *E8M0Rounding) UnmarshalText(text []byte) error { return e8m0Roundings.UnmarshalText(r, text) }

// Encode returns |x| rounded to a power of two from 2^-127 on: below that, and of zero, it
// is 2^-127. A NaN is [E8M0NaN]; an infinity, and what rounds above 2^127, is 2^127 or,
// with [OverflowNonFinite], NaN. Torchao's scales round so, torch's cast to float8_e8m0fnu
// is E8M0Nearest; ml_dtypes makes zeros and negative values NaN, besides. As in
// all of them, E8M0Nearest rounds up whatever lies between 2^-127 and 2^-126. It panics
// if r or o is not defined.
func (r E8M0Rounding) Encode(x float32, o Overflow) E8M0 {
	if r > E8M0Nearest || o > OverflowNonFinite {
		panic(unknownPolicy)
	}
	const normal = 1 << 23 // bits of 2^-126
	b := math.Float32bits(x) &^ (1 << 31)
	switch {
	case b > infinityBits:
		return E8M0NaN
	case b <= normal/2:
		return 0
	case b < normal:
		if r == E8M0Down {
			return 0
		}
		return 1
	case r == E8M0Up:
		b += normal - 1
	case r == E8M0Nearest:
		b += normal / 2
	}
	if e := E8M0(b >> 23); e < E8M0NaN {
		return e
	}
	if o == OverflowSaturate {
		return e8m0Max
	}
	return E8M0NaN
}
