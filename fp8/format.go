package fp8

import (
	"fmt"
	"math"
	"strings"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Format names an 8-bit floating-point format. The zero value is E4M3. Methods that
// describe a format panic if it is unknown; see [Format.Valid].
type Format uint8

// The formats. See the package documentation for their ranges.
const (
	E4M3     Format = iota // OCP E4M3: no infinities, max 448
	E5M2                   // OCP E5M2: IEEE-like, max 57344
	E4M3FNUZ               // CDNA3 E4M3: one NaN, no -0, max 240
	E5M2FNUZ               // CDNA3 E5M2: one NaN, no -0, max 57344
)

// Formats returns all formats, in the order of their constants.
func Formats() []Format { return []Format{E4M3, E5M2, E4M3FNUZ, E5M2FNUZ} }

// layout is what distinguishes one format from another.
type layout struct {
	name     string
	mantissa int   // explicit mantissa bits
	bias     int   // exponent bias
	max      uint8 // code of the largest finite magnitude
	nan      uint8 // positive NaN, or the only one
	overflow uint8 // what a non-saturating overflow gives: Inf where there is one
	fnuz     bool  // a sign bit alone is NaN, not -0
}

var layouts = [...]layout{
	E4M3:     {name: "E4M3", mantissa: 3, bias: 7, max: 0x7E, nan: 0x7F, overflow: 0x7F},
	E5M2:     {name: "E5M2", mantissa: 2, bias: 15, max: 0x7B, nan: 0x7F, overflow: 0x7C},
	E4M3FNUZ: {name: "E4M3FNUZ", mantissa: 3, bias: 8, max: 0x7F, nan: 0x80, overflow: 0x80, fnuz: true},
	E5M2FNUZ: {name: "E5M2FNUZ", mantissa: 2, bias: 16, max: 0x7F, nan: 0x80, overflow: 0x80, fnuz: true},
}

// Valid reports whether f is one of the formats of this package.
func (f Format) Valid() bool { return int(f) < len(layouts) }

const unknownFormat = "fp8: unknown format"

// mustBeKnown is for functions that return no error.
func (f Format) mustBeKnown() {
	if !f.Valid() {
		panic(unknownFormat)
	}
}

func (f Format) layout() *layout {
	f.mustBeKnown()
	return &layouts[f]
}

func (f Format) table() *[256]float32 {
	f.mustBeKnown()
	return &decodeTables[f]
}

// String returns the format's name, such as "E4M3".
func (f Format) String() string {
	if !f.Valid() {
		return fmt.Sprintf("Format(%d)", uint8(f))
	}
	return layouts[f].name
}

// ParseFormat returns the format of the given name, in any case.
func ParseFormat(name string) (Format, error) {
	for _, f := range Formats() {
		if strings.EqualFold(name, f.String()) {
			return f, nil
		}
	}
	return 0, sentinel.Errorf(ErrFormat, "fp8: unknown format %q: want E4M3, E5M2, E4M3FNUZ or E5M2FNUZ", name)
}

// MarshalText implements [encoding.TextMarshaler] by the format's name.
func (f Format) MarshalText() ([]byte, error) {
	if !f.Valid() {
		return nil, sentinel.Errorf(ErrFormat, "fp8: %v has no name", f)
	}
	return []byte(f.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler] as [ParseFormat] does.
func (f *Format) UnmarshalText(text []byte) error {
	parsed, err := ParseFormat(string(text))
	if err == nil {
		*f = parsed
	}
	return err
}

// Mantissa returns the number of explicit mantissa bits.
func (f Format) Mantissa() int { return f.layout().mantissa }

// Bias returns the exponent bias.
func (f Format) Bias() int { return f.layout().bias }

// MaxCode returns the code of the largest finite value.
func (f Format) MaxCode() byte { return f.layout().max }

// NaNCode returns the code of the positive NaN, or of the only one.
func (f Format) NaNCode() byte { return f.layout().nan }

// Max returns the largest finite value.
func (f Format) Max() float32 { return f.table()[f.layout().max] }

// MinNormal returns the smallest normal value.
func (f Format) MinNormal() float32 { return f.table()[1<<f.layout().mantissa] }

// MinSubnormal returns the smallest positive value.
func (f Format) MinSubnormal() float32 { return f.table()[1] }

// IsNaN reports whether code is a NaN of format f.
func (f Format) IsNaN(code byte) bool { return f.layout().isNaN(code) }

func (l *layout) isNaN(code byte) bool {
	if l.fnuz {
		return code == l.nan
	}
	return code&0x7F > l.max && !l.isInf(code)
}

func (l *layout) isInf(code byte) bool {
	return l.overflow != l.nan && code&0x7F == l.overflow
}

// IsInf reports whether code is an infinity of format f, of the given sign or,
// for sign 0, of either.
func (f Format) IsInf(code byte, sign int) bool {
	negative := code&0x80 != 0
	return f.layout().isInf(code) && (sign == 0 || (sign < 0) == negative)
}

// IsZero reports whether code is a zero of format f, of either sign.
func (f Format) IsZero(code byte) bool { return f.table()[code] == 0 }

// Float32 returns the value of code, exactly. A NaN is quiet and keeps its sign
// bit, which the only NaN of the FNUZ formats has set.
func (f Format) Float32(code byte) float32 { return f.table()[code] }

var decodeTables = makeDecodeTables()

func makeDecodeTables() (tables [len(layouts)][256]float32) {
	for f := range tables {
		for code := range tables[f] {
			tables[f][code] = layouts[f].value(uint8(code))
		}
	}
	return tables
}

// halfTables has the same as float16, which holds every value exactly.
var halfTables = makeHalfTables()

func makeHalfTables() (tables [len(layouts)][256]float16.Float16) {
	for f := range tables {
		for code := range tables[f] {
			tables[f][code] = float16.Fromfloat32(decodeTables[f][code])
		}
	}
	return tables
}

const positiveNaN = 0x7FC00000 // the quiet float32 without a payload

// value is the definition of a code (arXiv 2209.05433, Table 1).
func (l *layout) value(code uint8) float32 {
	const infinity = 0x7F800000
	sign := uint32(code&0x80) << 24
	switch {
	case l.isNaN(code):
		return math.Float32frombits(sign | positiveNaN)
	case l.isInf(code):
		return math.Float32frombits(sign | infinity)
	}
	magnitude := int(code & 0x7F)
	exponent, fraction := magnitude>>l.mantissa, magnitude&(1<<l.mantissa-1)
	if exponent > 0 {
		fraction |= 1 << l.mantissa
		exponent--
	}
	v := float32(math.Ldexp(float64(fraction), exponent+1-l.bias-l.mantissa))
	return math.Float32frombits(sign | math.Float32bits(v))
}
