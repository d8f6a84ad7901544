package oracle

import (
	"math/bits"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/number"
)

// Float is a format of operands that are wider than FP8 and have no scales.
type Float uint8

const (
	// NoFloat is the format of none: a Model of it multiplies FP8 or narrower codes.
	NoFloat Float = iota
	// BF16 is bfloat16: 8 exponent bits and 7 of fraction.
	BF16
	// FP16 is IEEE 754's binary16.
	FP16
	// TF32 has the exponent of a float32 and 10 fraction bits. A number of it is a float32
	// whose low 13 bits are zero; rounding to one is up to the caller.
	TF32
)

var floats = enum.Enum[Float]{Type: "Float", What: "format of floats", Prefix: "oracle",
	Names: []string{"none", "bf16", "fp16", "tf32"}}

// ParseFloat returns the format of the given name, in any case.
func ParseFloat(name string) (Float, error) { return floats.Parse(name) }

// String returns the name, such as "bf16".
func (f Float) String() string                   { return floats.String(f) }
func (f Float) MarshalText() ([]byte, error)     { return floats.MarshalText(f) }
func (f *Float) UnmarshalText(text []byte) error { return floats.UnmarshalText(f, text) }

// number is the format's place in the table of all formats.
func (f Float) number() number.Format {
	return [...]number.Format{BF16: number.BF16, FP16: number.FP16, TF32: number.TF32}[f]
}

func (f Float) layout() layout { return layoutFor(f.number()) }

// Has reports whether x is a number of the format, an infinity or a NaN. NoFloat has none.
func (f Float) Has(x float32) bool {
	return f != NoFloat && floats.Valid(f) && f.number().Has(x)
}

// element is x, which the format has, as a datapath sees it.
func (f Float) element(x float32) element {
	switch classOf(x) {
	case nan:
		return element{Exponent: specialExponent}
	case positiveInf:
		return element{Significand: 1, Exponent: specialExponent}
	case negativeInf:
		return element{Significand: -1, Exponent: specialExponent}
	}
	if x == 0 {
		return element{Exponent: zeroExponent}
	}
	l := f.layout()
	m, e := split32(x)
	exponent := max(e+bits.Len64(uint64(max(m, -m)))-1, l.minExponent())
	if shift := exponent - l.fraction - e; shift >= 0 {
		m >>= shift
	} else {
		m <<= -shift
	}
	return element{Significand: int16(m), Exponent: int16(exponent)}
}

// appendElements appends the elements of values.
func (f Float) appendElements(dst []element, values []float32) []element {
	for _, x := range values {
		dst = append(dst, f.element(x))
	}
	return dst
}
