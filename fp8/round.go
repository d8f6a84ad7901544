package fp8

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/convert"
)

// Encoder is a format and a policy prepared for many slices. Make one with
// [NewEncoder]. Not safe for concurrent use.
type Encoder struct {
	*layout
	table  *[256]float32
	policy Policy
	random stream
	given  []byte // random bytes, in the place of random
	added  bool   // as BitsAdded has it

	scale  Scale
	scaled bool    // scale changes values
	broken bool    // scale is NaN or infinite, and with it every value
	factor float32 // what kernels multiply or divide by
	least  float32 // of many factors, that which makes values smallest

	near   nearest
	vector convert.Encoding // what kernels need
	fit    bool             // kernels serve this format and policy
}

// nearest is how a float32 is rounded to nearest even: below the smallest normal
// value by adding a number whose last place is the smallest subnormal; above by
// adding half a step to the bits, which carries into the exponent by itself.
type nearest struct {
	minNormal uint32 // bits of the smallest normal value
	addend    float32
	half      uint32 // half a step less one, less the difference in bias, at shift
	shift     uint32 // mantissa bits of float32 that the format drops
}

// NewEncoder returns an Encoder for [EncodeBlock]. It panics if the format or a
// value of the policy is unknown.
func NewEncoder(f Format, p Policy) Encoder {
	f.mustBeKnown()
	p.mustBeKnown()
	e := Encoder{layout: &layouts[f], table: &decodeTables[f], policy: p, near: nearests[f], vector: vectors[f]}
	e.vector.Mode = convert.Mode(p.Rounding)
	e.fit = e.fits()
	if p.Quotient != QuotientWide {
		e.vector.Mode = convert.NearestEvenOfBF16
		e.fit = e.fit && p.Quotient == QuotientBFloat16 && p.Rounding == NearestEven &&
			(p.Zero == ZeroKeepSign || p.Zero == ZeroUnsigned)
	}
	e.vector.Zeros = [...]convert.Zeros{
		ZeroKeepSign: convert.ZerosSigned, ZeroPositive: convert.ZerosPositive,
		ZeroNegative: convert.ZerosNegative, ZeroUnsigned: convert.ZerosUnsigned,
	}[p.Zero]
	if e.bits < 8 {
		e.vector.Often = 1
	}
	if e.fnuz {
		e.vector.Zeros = convert.ZerosUnsigned
	}
	if p.Rounding == Stochastic {
		e.random = newStream(p.Seed, 0)
	}
	return e
}

const unmade = "fp8: the Encoder was not made by NewEncoder"

func (e *Encoder) mustBeMade() {
	if e == nil || e.layout == nil {
		panic(unmade)
	}
}

// fits reports whether kernels convert the format.
func (l *layout) fits() bool { return !l.integer }

var nearests, vectors = makeVectors()

func makeVectors() (nearests [len(layouts)]nearest, vectors [len(layouts)]convert.Encoding) {
	for f := range layouts {
		l := &layouts[f]
		shift := uint32(23 - l.mantissa)
		rebias := uint32(127-l.bias) << l.mantissa << shift
		nearests[f] = nearest{
			minNormal: uint32(127+1-l.bias) << 23,
			addend:    math.Float32frombits(uint32(127+1-l.bias-l.mantissa+23) << 23),
			half:      1<<(shift-1) - 1 - rebias,
			shift:     shift,
		}
		vectors[f] = convert.Encoding{
			MinNormal: uint32(127+1-l.bias) << 23,
			Shift:     shift,
			MaxCode:   uint32(l.max),
			Normal:    1 << l.mantissa,
			Sign:      uint32(l.sign()),
			Magic:     (127+shift)<<23 | -((uint32(127+1-l.bias)+shift)<<l.mantissa)&0xFFFF,
		}
	}
	return nearests, vectors
}

// setScale prepares for a block.
func (e *Encoder) setScale(s Scale) {
	e.scale, e.scaled = s, !s.isOne()
	stored := math.Float32bits(s.Stored) &^ (1 << 31)
	e.broken = stored >= infinityBits
	e.factor, e.vector.Divide = s.factor()
}

// factor returns the number that values are multiplied, or divided, by. A loop over many
// scales is BlockScales.Set, which must agree.
func (s Scale) factor() (factor float32, divide uint32) {
	switch {
	case s.isOne():
		return 1, 0
	case s.Multiplier != 0:
		return s.Multiplier, 0
	}
	return s.divisor(), 1
}

// encode32 returns the code of x, the element of the given index. saturated
// says that x is finite and too large for the format.
func (e *Encoder) encode32(x float32, index uint64) (code uint8, saturated bool) {
	b := math.Float32bits(x)
	negative, magnitude := b>>31 != 0, b&0x7FFFFFFF
	if magnitude >= 0x7F800000 {
		return e.special(negative, magnitude > 0x7F800000), false
	}
	var c uint32
	if e.policy.Rounding == NearestEven {
		c = e.nearest32(magnitude)
	} else if e.policy.Rounding == NearestTowardZero {
		// An odd number is no tie, and that before an even one is on the same side of all
		// others; before a tie it is below it.
		c = e.nearest32((max(magnitude, 1) - 1) | 1)
	} else if e.added {
		sum := e.add(magnitude, index)
		c = e.round(int(sum>>23)-127, uint64(sum&0x7FFFFF|1<<23), 23, index)
	} else if magnitude >= 1<<23 { // a subnormal is below what Stochastic resolves
		c = e.round(int(magnitude>>23)-127, uint64(magnitude&0x7FFFFF|1<<23), 23, index)
	}
	return e.finish(negative, c, magnitude == 0)
}

// encode64 is encode32 for float64.
func (e *Encoder) encode64(x float64, index uint64) (code uint8, saturated bool) {
	b := math.Float64bits(x)
	negative, magnitude := b>>63 != 0, b&(1<<63-1)
	if magnitude >= 0x7FF<<52 {
		return e.special(negative, magnitude > 0x7FF<<52), false
	}
	if e.added {
		return e.encode32(float32(min(max(x, -math.MaxFloat32), math.MaxFloat32)), index)
	}
	var c uint32
	if magnitude >= 1<<52 { // a subnormal is below what Stochastic resolves
		c = e.round(int(magnitude>>52)-1023, magnitude&(1<<52-1)|1<<52, 52, index)
	}
	return e.finish(negative, c, magnitude == 0)
}

// nearest32 rounds a finite magnitude to nearest even, with an unlimited
// exponent.
func (e *Encoder) nearest32(magnitude uint32) uint32 {
	n := &e.near
	if magnitude < n.minNormal {
		return math.Float32bits(math.Float32frombits(magnitude)+n.addend) - math.Float32bits(n.addend)
	}
	return (magnitude + n.half + magnitude>>n.shift&1) >> n.shift
}

// round rounds significand * 2^(exponent-width), whose leading bit stands at
// position width, with an unlimited exponent.
func (e *Encoder) round(exponent int, significand uint64, width int, index uint64) uint32 {
	smallest := 1 - e.bias
	shift := width - e.mantissa
	above := 0 // binades above the smallest normal one
	if exponent < smallest {
		shift += smallest - exponent
	} else {
		above = exponent - smallest
	}
	// What does not fit, as the 64 bits after the binary point. Those that drop
	// out of fraction belong to values far below half the smallest subnormal.
	var kept, fraction uint64
	if shift < 64 {
		kept, fraction = significand>>shift, significand<<(64-shift)
	} else {
		fraction = significand >> (shift - 64)
	}
	c := kept + uint64(above)<<e.mantissa
	if e.roundsUp(c, fraction, index) {
		c++
	}
	return uint32(c)
}

// roundsUp reports whether what lies a fraction of a step beyond a code is rounded to
// the next.
func (e *Encoder) roundsUp(code, fraction, index uint64) bool {
	const half = 1 << 63
	switch {
	case e.policy.Rounding == NearestEven:
		return fraction > half || fraction == half && code&1 == 1
	case e.policy.Rounding == NearestTowardZero:
		return fraction > half
	case e.added: // it is rounded already
		return false
	case e.given != nil:
		return fraction>>56+uint64(e.given[index]) >= 256
	case e.policy.Rounding == Stochastic:
		return uint32(fraction>>32) > e.random.at(index)
	}
	return false
}

// finish applies the range of the format to the rounded magnitude of a finite value,
// which was a zero or not.
func (e *Encoder) finish(negative bool, c uint32, zero bool) (code uint8, saturated bool) {
	limit := uint32(e.largest(negative))
	switch {
	case c > limit && e.policy.Overflow == OverflowSaturate:
		return e.signed(negative, uint8(limit)), true
	case c > limit:
		return e.signed(negative, e.beyond(negative)), true
	case c == 0:
		return e.zero(negative, zero), false
	}
	return e.signed(negative, uint8(c)), false
}

// largest returns the magnitude of the last value of a sign.
func (l *layout) largest(negative bool) uint8 {
	switch {
	case negative && l.unsigned:
		return 0
	case negative && l.integer:
		return l.max + 1 // two's complement reaches one farther down
	}
	return l.max
}

// beyond returns the code of an infinity or of what stands for it, without its sign.
func (l *layout) beyond(negative bool) uint8 {
	switch {
	case negative && l.unsigned:
		return l.nan
	case l.overflow == l.max: // there is nothing
		return l.largest(negative)
	}
	return l.overflow
}

// signed returns the code of a magnitude, which is a code, of the given sign.
func (l *layout) signed(negative bool, c uint8) uint8 {
	switch {
	case !negative:
		return c
	case l.integer:
		return -c
	}
	return l.sign() | c
}

// zero returns the code of what became zero, and of what was a zero before.
func (e *Encoder) zero(negative, was bool) uint8 {
	switch e.policy.Zero {
	case ZeroPositive:
		negative = negative && !was
	case ZeroNegative:
		negative = negative || was
	case ZeroUnsigned:
		negative = false
	}
	if e.fnuz {
		return 0
	}
	return e.signed(negative, 0)
}

// special encodes an infinity or a NaN.
func (e *Encoder) special(negative, nan bool) uint8 {
	switch {
	case nan:
		return e.encodeNaN(negative)
	case e.policy.Inf == InfPropagate:
		return e.signed(negative, e.beyond(negative))
	}
	return e.signed(negative, e.largest(negative))
}

func (e *Encoder) encodeNaN(negative bool) uint8 {
	without := e.nan == e.max
	switch {
	case without && e.policy.NaN == NaNZero:
		return 0
	case without && e.policy.NaN == NaNOppositeZero:
		return e.signed(!negative, 0)
	case without || e.policy.NaN != NaNKeepSign:
		return e.nan
	}
	return e.signed(negative, e.nan)
}
