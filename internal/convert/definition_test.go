package convert

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

const infinity = 0x7F800000

// format is an FP8 format by its parameters, and what package fp8 tells kernels
// of it, from the documentation of Encoding and Decoding.
type format struct {
	name                 string
	bits, bias, mantissa int
	max                  uint32
	unsignedZero         bool
	lone                 uint32
}

func (f *format) sign() uint32 { return 1 << (f.bits - 1) }

// special reports whether a code is not finite, as far as kernels say.
func (f *format) special(code uint32) bool {
	return f.bits == 8 && code&0x7F > f.max || code == f.lone
}

// negative and magnitude are what a code stands for.
func (f *format) negative(code uint32) bool    { return code&f.sign() != 0 }
func (f *format) magnitude(code uint32) uint32 { return code & (f.sign() - 1) }

var formats = []format{
	{"E4M3", 8, 7, 3, 0x7E, false, 0xFF},
	{"E5M2", 8, 15, 2, 0x7B, false, 0xFF},
	{"E4M3FNUZ", 8, 8, 3, 0x7F, true, 0x80},
	{"E5M2FNUZ", 8, 16, 2, 0x7F, true, 0x80},
	{"E2M1", 4, 1, 1, 0x07, false, 0xFF},
	{"E2M3", 6, 1, 3, 0x1F, false, 0xFF},
	{"E3M2", 6, 3, 2, 0x1F, false, 0xFF},
	{"E3M4", 8, 3, 4, 0x6F, false, 0xFF},
	{"E4M3B11FNUZ", 8, 11, 3, 0x7F, true, 0x80},
}

// widths are formats of each width of the mantissa and of the code.
var widths = []format{formats[0], formats[3], formats[4], formats[6], formats[7]}

// modes returns those that a level has kernels for.
func modes(l cpu.Level) []Mode {
	all := []Mode{NearestEven, TowardZero, Stochastic, NearestTowardZero, NearestEvenOfBF16}
	if !HalvesAvailable(l) {
		return all[:NearestEvenOfBF16]
	}
	return all
}

// scaling is how values are scaled.
type scaling struct {
	scale  float32
	divide uint32
}

var scalings = []scaling{
	{1, 0}, {3, 0}, {0.0123, 0}, {0x1p-126, 0}, {0x1p-140, 0}, {0x1p70, 0}, {math.MaxFloat32, 0}, {0, 0},
	{1, 1}, {3, 1}, {0.0123, 1}, {0x1p-126, 1}, {0x1p-140, 1}, {0x1p70, 1}, {math.MaxFloat32, 1},
}

var layouts = []Layout{One, PerStep, PerElement}

// scaleOf returns the place of the scale of element i.
func (l Layout) scaleOf(i int) int {
	switch l {
	case PerStep:
		return i / 16
	case PerElement:
		return i
	}
	return 0
}

// scales returns the number of scales of n elements.
func (l Layout) scales(n int) int { return l.scaleOf(n-1) + 1 }

func (f *format) encoding(divide uint32, m Mode) Encoding {
	shift := 23 - f.mantissa
	var zeros Zeros
	var often uint32
	if f.bits < 8 {
		often = 1
	}
	if f.unsignedZero {
		zeros = ZerosUnsigned
	}
	power := func(exponent int) float32 { return float32(math.Ldexp(1, exponent)) }
	return Encoding{
		MinNormal: math.Float32bits(power(1 - f.bias)),
		Shift:     uint32(shift),
		MaxCode:   f.max,
		Normal:    1 << f.mantissa,
		Sign:      f.sign(),
		Magic:     uint32(127+shift)<<23 | -(uint32(128-f.bias+shift)<<f.mantissa)&0xFFFF,
		Divide:    divide,
		Mode:      m,
		Zeros:     zeros,
		Often:     often,
		K0:        0x89ABCDEF,
		K1:        0x13579BDF,
	}
}

func (f *format) decoding(scale float32) Decoding {
	d := Decoding{
		Bits:   uint32(f.bits),
		Shift:  uint32(23 - f.mantissa),
		Mask:   (f.sign() - 1) << (23 - f.mantissa),
		Rebias: float32(math.Ldexp(1, 127-f.bias)),
		Scale:  scale,
		Max:    f.max,
		Lone:   f.lone,

		Offset:   uint32(127-f.bias) << 23,
		Smallest: math.Float32bits(float32(math.Ldexp(1, 1-f.bias))),
	}
	if f.bias < 16 { // the exponents of the others reach beyond float16's
		exponents := f.bits - 1 - f.mantissa
		d.HalfRebias, d.HalfShift = float32(math.Ldexp(1, 15-f.bias)), uint32(5-exponents)
	}
	if f.bits < 8 {
		d.Max = 0x7F
	}
	return d
}

func magnitude(x float32) uint32 { return math.Float32bits(x) &^ (1 << 31) }

// encodable reports whether a kernel encodes a value that is x once scaled.
func encodable(x float32) bool { return magnitude(x) < Limit }

// of returns x scaled. A float64 has enough places that rounding twice is
// rounding once.
func (s scaling) of(x float32) float32 {
	if s.divide != 0 {
		return float32(float64(x) / float64(s.scale))
	}
	return float32(float64(x) * float64(s.scale))
}

// value returns what a code without its sign stands for, as if the exponent
// went on.
func (f *format) value(code uint32) float64 {
	exponent, fraction := int(code>>f.mantissa), int(code&(1<<f.mantissa-1))
	if exponent == 0 {
		return math.Ldexp(float64(fraction), 1-f.bias-f.mantissa)
	}
	return math.Ldexp(float64(fraction+1<<f.mantissa), exponent-f.bias-f.mantissa)
}

// code rounds a magnitude with an unlimited exponent. All steps are exact.
func (f *format) code(y float64, m Mode, random uint32) uint32 {
	if m == NearestEvenOfBF16 {
		y, m = bfloat16(y), NearestEven
	}
	if y == 0 {
		return 0
	}
	_, exponent := math.Frexp(y)
	binade := max(exponent-1, 1-f.bias)
	steps := math.Ldexp(y, f.mantissa-binade)
	whole := math.Floor(steps)
	switch m {
	case NearestEven:
		whole = math.RoundToEven(steps)
	case NearestTowardZero:
		whole = math.Ceil(steps - 0.5)
	case Stochastic:
		if math.Floor(math.Ldexp(steps-whole, 32)) > float64(random) {
			whole++
		}
	}
	return uint32(whole) + uint32(binade-(1-f.bias))<<f.mantissa
}

// bfloat16 returns the nearest number of eight bits, ties to even, that is a multiple of the
// smallest bfloat16.
func bfloat16(y float64) float64 {
	_, exponent := math.Frexp(y)
	step := max(exponent-8, -133)
	return math.Ldexp(math.RoundToEven(math.Ldexp(y, -step)), step)
}

// random returns the bits of stochastic rounding for an element: twice the
// finalizer of MurmurHash3, keyed.
func random(e *Encoding, index uint32) uint32 {
	finalizer := func(h uint32) uint32 {
		h ^= h >> 16
		h *= 0x85EBCA6B
		h ^= h >> 13
		h *= 0xC2B2AE35
		return h ^ h>>16
	}
	return finalizer(finalizer(index^e.K0) + e.K1)
}

// expect returns what Encode shall give, for src whose scaled values are below
// Limit.
func (f *format) expect(src []float32, e *Encoding, scales []float32, layout Layout) (codes []byte, c Counts) {
	c.MinBits = math.MaxUint32
	for i, x := range src {
		y := scaling{scales[layout.scaleOf(i)], e.Divide}.of(x)
		c.MaxScaled = max(c.MaxScaled, magnitude(y))
		c.MaxBits = max(c.MaxBits, magnitude(x))
		code := f.code(math.Abs(float64(y)), e.Mode, random(e, e.Index+uint32(i)))
		sign := math.Float32bits(y) >> 31
		if code > f.max {
			c.Saturated++
			c.SaturatedNeg += sign
		}
		if code < 1<<f.mantissa {
			c.BelowNormal++
		}
		if code == 0 {
			c.ZeroCodes++
		}
		if x == 0 {
			c.Zeros++
		} else {
			c.MinBits = min(c.MinBits, magnitude(x)-1)
		}
		code = min(code, f.max)
		switch {
		case x == 0 && e.Zeros == ZerosPositive, code == 0 && e.Zeros == ZerosUnsigned:
			sign = 0
		case x == 0 && e.Zeros == ZerosNegative:
			sign = 1
		}
		code |= sign * f.sign()
		codes = append(codes, byte(code))
	}
	return codes, c
}

// exponents returns values of all exponents of float32, with the mantissas at
// which something happens in a format, of both signs.
func exponents() (values []float32) {
	mantissas := []uint32{1<<22 - 2, 1<<22 + 2, 1<<23 - 2, 2}
	for m := uint32(0); m < 1<<23; m += 1 << 19 {
		mantissas = append(mantissas, m, m+1, m+1<<19-1)
	}
	for exponent := range uint32(255) {
		for _, m := range mantissas {
			x := math.Float32frombits(exponent<<23 | m)
			values = append(values, x, -x)
		}
	}
	return values
}

// edges returns values that s carries to codes of f and between them, and the
// float32 beside them.
func (f *format) edges(s scaling) (values []float32) {
	for code := range f.max + 2 {
		value, next := f.value(code), f.value(code+1)
		for _, y := range []float64{value, value + (next-value)/4, (value + next) / 2} {
			x := y * float64(s.scale)
			if s.divide == 0 {
				x = y / float64(s.scale)
			}
			b := int(math.Float32bits(float32(math.Abs(x))))
			for v := max(b-2, 0); v <= b+2; v++ {
				z := math.Float32frombits(uint32(v))
				values = append(values, z, -z)
			}
		}
	}
	return values
}

// thresholds returns values for elements 0 and on of which many have, as what is
// cut off, exactly the random bits of their element, or one place more or less.
func (f *format) thresholds(e *Encoding, n int) []float32 {
	values := make([]float32, n)
	normal, step := math.Float32frombits(e.MinNormal), f.value(1)
	for i := range values {
		r := random(e, e.Index+uint32(i))
		var x float32
		if i/2%2 == 0 { // a normal value: the random bits may have too many places
			r &= ^uint32(0) << (32 - e.Shift)
			x = normal + float32(float64(r)*0x1p-32*step)
		} else {
			x = float32(float64(r&0xFFFFFF00) * 0x1p-32 * step)
		}
		x = math.Float32frombits(math.Float32bits(x) + uint32(i)%3)
		values[i] = math.Float32frombits(max(math.Float32bits(x), 1)-1) * float32(1-i&2)
	}
	return values
}
