package fp8_test

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
)

// grid is a binary floating-point format by its definition: the magnitudes that
// it has and, for every code, the smallest float64 that is rounded so far up.
type grid struct {
	max     int       // code of the largest finite magnitude
	value   []float64 // of codes 0 to max+1, the last as if the exponent went on
	nearest []float64 // first float64 that rounds to the code or above, ties to even
	below   []float64 // the same, ties toward zero
}

func newGrid(mantissa, bias, max int) grid {
	g := grid{max: max}
	for c := 0; c <= max+1; c++ {
		exponent, fraction := c>>mantissa, float64(c&(1<<mantissa-1))
		if exponent == 0 {
			g.value = append(g.value, math.Ldexp(fraction, 1-bias-mantissa))
		} else {
			g.value = append(g.value, math.Ldexp(fraction+math.Ldexp(1, mantissa), exponent-bias-mantissa))
		}
		tie, after := 0.0, 0.0
		if c > 0 {
			tie = g.midpoint(c - 1)
			after = math.Nextafter(tie, math.Inf(1))
		}
		g.below = append(g.below, after)
		if c%2 == 1 {
			tie = after // the tie is c-1's
		}
		g.nearest = append(g.nearest, tie)
	}
	return g
}

// midpoint is halfway between code c and the next: exact in float64.
func (g *grid) midpoint(c int) float64 { return (g.value[c] + g.value[c+1]) / 2 }

// lookup returns the last code whose first float64 is not above x, which is not
// negative.
func lookup(first []float64, x float64) int {
	return sort.Search(len(first), func(c int) bool { return first[c] > x }) - 1
}

// cursor is lookup for arguments that mostly ascend.
type cursor struct {
	first []float64
	code  int
}

func (k *cursor) at(x float64) int {
	for x < k.first[k.code] {
		k.code--
	}
	for k.code+1 < len(k.first) && x >= k.first[k.code+1] {
		k.code++
	}
	return k.code
}

// definition is an FP8 format as its specification states it. Arrays are
// indexed by the sign bit.
type definition struct {
	grid
	format   fp8.Format
	sign     byte // what is above all magnitudes
	zero     [2]byte
	infinity [2]byte // what stands for it: Inf, NaN or the largest value
	nan      [2]byte
	hasInf   bool
	finite   bool // neither Inf nor NaN
	integer  bool // two's complement, of which max is the largest negative magnitude
	unsigned bool // negative values have no codes; infinity[1] is what stands for theirs
}

var definitions = []*definition{
	{grid: newGrid(3, 7, 0x7E), format: fp8.E4M3, sign: 0x80,
		zero: [2]byte{0x00, 0x80}, infinity: [2]byte{0x7F, 0xFF}, nan: [2]byte{0x7F, 0xFF}},
	{grid: newGrid(2, 15, 0x7B), format: fp8.E5M2, sign: 0x80, hasInf: true,
		zero: [2]byte{0x00, 0x80}, infinity: [2]byte{0x7C, 0xFC}, nan: [2]byte{0x7F, 0xFF}},
	{grid: newGrid(3, 8, 0x7F), format: fp8.E4M3FNUZ, sign: 0x80,
		zero: [2]byte{0x00, 0x00}, infinity: [2]byte{0x80, 0x80}, nan: [2]byte{0x80, 0x80}},
	{grid: newGrid(2, 16, 0x7F), format: fp8.E5M2FNUZ, sign: 0x80,
		zero: [2]byte{0x00, 0x00}, infinity: [2]byte{0x80, 0x80}, nan: [2]byte{0x80, 0x80}},
	{grid: newGrid(1, 1, 0x07), format: fp8.E2M1, sign: 0x08, finite: true,
		zero: [2]byte{0x00, 0x08}, infinity: [2]byte{0x07, 0x0F}, nan: [2]byte{0x07, 0x07}},
	{grid: newGrid(3, 1, 0x1F), format: fp8.E2M3, sign: 0x20, finite: true,
		zero: [2]byte{0x00, 0x20}, infinity: [2]byte{0x1F, 0x3F}, nan: [2]byte{0x1F, 0x1F}},
	{grid: newGrid(2, 3, 0x1F), format: fp8.E3M2, sign: 0x20, finite: true,
		zero: [2]byte{0x00, 0x20}, infinity: [2]byte{0x1F, 0x3F}, nan: [2]byte{0x1F, 0x1F}},
	{grid: newGrid(3, 7, 0x77), format: fp8.E4M3IEEE, sign: 0x80, hasInf: true,
		zero: [2]byte{0x00, 0x80}, infinity: [2]byte{0x78, 0xF8}, nan: [2]byte{0x7C, 0xFC}},
	{grid: newGrid(4, 3, 0x6F), format: fp8.E3M4, sign: 0x80, hasInf: true,
		zero: [2]byte{0x00, 0x80}, infinity: [2]byte{0x70, 0xF0}, nan: [2]byte{0x78, 0xF8}},
	{grid: newGrid(3, 11, 0x7F), format: fp8.E4M3B11FNUZ, sign: 0x80,
		zero: [2]byte{0x00, 0x00}, infinity: [2]byte{0x80, 0x80}, nan: [2]byte{0x80, 0x80}},
	// Its steps are those of a format's subnormals, up to 128 of them.
	{grid: newGrid(8, -1, 0x80), format: fp8.MXINT8, sign: 0x80, finite: true, integer: true,
		zero: [2]byte{0x00, 0x00}, infinity: [2]byte{0x7F, 0x80}, nan: [2]byte{0x7F, 0x7F}},
}

// decode returns the value of a code.
func (d *definition) decode(code byte) float64 {
	sign, c := 1.0, int(code&(d.sign-1))
	if code&d.sign != 0 {
		sign = -1
	}
	switch {
	case d.integer:
		return float64(int8(code)) * 0x1p-6
	case d.finite:
	case d.hasInf && c == int(d.infinity[0]):
		return math.Inf(int(sign))
	case code == d.nan[0] || c > d.max: // the only NaN of FNUZ has the sign bit set
		return signedNaN(sign < 0)
	}
	return math.Copysign(d.value[c], sign)
}

// encode returns the code of element index and whether it is finite overflow.
func (d *definition) encode(x float64, p fp8.Policy, index uint64) (code byte, saturated bool) {
	sign := 0
	if math.Signbit(x) {
		sign = 1
	}
	switch {
	case x != x && d.finite && p.NaN == fp8.NaNZero:
		return d.zero[0], false
	case x != x && d.finite && p.NaN == fp8.NaNOppositeZero:
		return d.zero[1-sign], false
	case x != x && p.NaN != fp8.NaNKeepSign:
		return d.nan[0], false
	case x != x:
		return d.nan[sign], false
	case math.IsInf(x, 0) && p.Inf == fp8.InfSaturate:
		return d.signed(sign, d.limit(sign)), false
	case math.IsInf(x, 0):
		return d.infinity[sign], false
	}
	c := d.round(math.Abs(x), p, index)
	if x == 0 {
		return d.code(d.signOfZero(sign, p), 0, fp8.Policy{}), false
	}
	return d.code(sign, c, p), c > d.limit(sign)
}

// limit returns the largest magnitude of a sign.
func (d *definition) limit(sign int) int {
	switch {
	case d.integer && sign == 0:
		return d.max - 1
	case d.unsigned && sign == 1:
		return 0
	}
	return d.max
}

// signed returns the code of a magnitude with a sign.
func (d *definition) signed(sign, c int) byte {
	switch {
	case sign == 0:
		return byte(c)
	case d.integer:
		return byte(256 - c)
	}
	return byte(c) | d.sign
}

// magnitude returns the code without its sign.
func (d *definition) magnitude(code byte) int {
	if d.integer {
		return max(int(int8(code)), -int(int8(code)))
	}
	return int(code & (d.sign - 1))
}

// signOfZero returns the sign that a zero gets.
func (d *definition) signOfZero(sign int, p fp8.Policy) int {
	return [...]int{fp8.ZeroKeepSign: sign, fp8.ZeroPositive: 0, fp8.ZeroNegative: 1, fp8.ZeroUnsigned: 0}[p.Zero]
}

// first returns what lookup needs for a deterministic rounding.
func (d *definition) first(r fp8.Rounding) []float64 {
	switch r {
	case fp8.NearestEven:
		return d.nearest
	case fp8.NearestTowardZero:
		return d.below
	}
	return d.value
}

// round returns the code of a finite magnitude, max+1 for overflow.
func (d *definition) round(magnitude float64, p fp8.Policy, index uint64) int {
	c := lookup(d.first(p.Rounding), magnitude)
	if p.Rounding != fp8.Stochastic || c > d.max {
		return c
	}
	// Both operations are exact: neighbours are at most a factor 2 apart.
	fraction := (magnitude - d.value[c]) / (d.value[c+1] - d.value[c])
	if uint64(math.Ldexp(fraction, 32)) > uint64(randomBits(p.Seed, index)) {
		c++
	}
	return c
}

// code returns the code of the rounded magnitude of what is no zero.
func (d *definition) code(sign, c int, p fp8.Policy) byte {
	switch {
	case c == 0 && p.Zero == fp8.ZeroUnsigned:
		return d.zero[0]
	case c == 0:
		return d.zero[sign]
	case c <= d.limit(sign):
		return d.signed(sign, c)
	case p.Overflow == fp8.OverflowSaturate:
		return d.signed(sign, d.limit(sign))
	}
	return d.infinity[sign]
}

// randomBits finds by bisection, from what becomes of values between 1 and
// 1.125, the 32 bits that stochastic rounding uses for an element.
func randomBits(seed, index uint64) uint32 {
	p := fp8.Policy{Rounding: fp8.Stochastic, Seed: seed}
	var code [1]byte
	n := sort.Search(1<<31-1, func(half int) bool { // bits 31 to 1
		src := [1]float64{1 + math.Ldexp(float64(half)*2+2, -35)}
		fp8.EncodeScaled(code[:], src[:], fp8.E4M3, p, fp8.Scale{}, index, nil)
		return code[0] == 0x39
	})
	bits := uint32(n) * 2
	src := [1]float64{1 + math.Ldexp(float64(bits)+1, -35)}
	fp8.EncodeScaled(code[:], src[:], fp8.E4M3, p, fp8.Scale{}, index, nil)
	if code[0] != 0x39 {
		bits++
	}
	return bits
}

// policies returns every combination of the knobs that have two values in all formats
// under the given rounding, and of the others each value once.
func policies(r fp8.Rounding) (all []fp8.Policy) {
	for i := range 8 {
		all = append(all, fp8.Policy{
			Overflow: fp8.Overflow(i & 1),
			Inf:      fp8.Inf(i >> 1 & 1),
			NaN:      fp8.NaN(i >> 2 & 1),
			Rounding: r,
		})
	}
	for _, nan := range []fp8.NaN{fp8.NaNZero, fp8.NaNOppositeZero} {
		all = append(all, fp8.Policy{NaN: nan, Rounding: r})
	}
	for _, zero := range []fp8.Zero{fp8.ZeroPositive, fp8.ZeroNegative, fp8.ZeroUnsigned} {
		all = append(all, fp8.Policy{Zero: zero, Rounding: r})
	}
	return all
}

// checkEncode compares the codes of src, element i being of value value(src[i]),
// with the definition, for all formats, knobs and deterministic roundings; under -short
// for every fifth policy, others than of the format before.
func checkEncode[T fp8.Float](src []T, value func(T) float64) error {
	codes := make([]byte, len(src))
	step := 1
	if testing.Short() {
		step = 5
	}
	for k, d := range definitions {
		for i, p := range slices.Concat(policies(fp8.NearestEven), policies(fp8.TowardZero), policies(fp8.NearestTowardZero)) {
			if (i+k)%step != 0 {
				continue
			}
			fp8.Encode(codes, src, d.format, p, nil)
			for i, x := range src {
				if want, _ := d.encode(value(x), p, 0); codes[i] != want {
					return fmt.Errorf("%v of %T %v (%v), %+v: code %02x, want %02x",
						d.format, x, value(x), x, p, codes[i], want)
				}
			}
		}
	}
	return nil
}

// float32Value is x, with the sign of a NaN, which a conversion loses on some
// hardware.
func float32Value(x float32) float64 {
	if x != x {
		return signedNaN(math.Float32bits(x)>>31 == 1)
	}
	return float64(x)
}

func signedNaN(negative bool) float64 {
	if negative {
		return math.Float64frombits(0xFFF8 << 48)
	}
	return math.Float64frombits(0x7FF8 << 48)
}

// alike is equality in which NaN equals NaN of the same sign and 0 does not
// equal -0.
func alike(a, b float64) bool {
	return (a == b || a != a && b != b) && math.Signbit(a) == math.Signbit(b)
}
