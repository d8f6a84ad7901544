package fp8

import (
	"fmt"
	"math"
	"strings"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Format names a format of 8 bits or fewer. The zero value is E4M3. A code is one byte
// whatever its format's width: it lies in the low bits, and what is above them is
// ignored by all that reads codes. Methods that describe a format panic if it is
// unknown; see [Format.Valid].
type Format uint8

// The formats. See the package documentation for their ranges.
const (
	E4M3        Format = iota // OCP E4M3: no infinities, max 448
	E5M2                      // OCP E5M2: IEEE-like, max 57344
	E4M3FNUZ                  // CDNA3 E4M3: one NaN, no -0, max 240
	E5M2FNUZ                  // CDNA3 E5M2: one NaN, no -0, max 57344
	E2M1                      // OCP FP4: finite values only, max 6
	E2M3                      // OCP FP6: finite values only, max 7.5
	E3M2                      // OCP FP6: finite values only, max 28
	E4M3IEEE                  // E4M3 with infinities, max 240
	E3M4                      // IEEE-like, max 15.5
	E4M3B11FNUZ               // one NaN, no -0, bias 11, max 30
	MXINT8                    // OCP INT8: two's complement in units of 2^-6
	numFormats
)

// Formats returns all formats, in the order of their constants.
func Formats() []Format {
	all := make([]Format, numFormats)
	for i := range all {
		all[i] = Format(i)
	}
	return all
}

// layout is what distinguishes one format from another. Its codes of positive sign are
// those of magnitudes in ascending order, the largest finite one being max.
type layout struct {
	name     string
	bits     int   // of a code, the sign's included
	mantissa int   // explicit mantissa bits
	bias     int   // exponent bias
	max      uint8 // code of the largest finite magnitude
	nan      uint8 // positive NaN, or the only one; max where there is none
	overflow uint8 // what a non-saturating overflow gives: Inf or NaN; max where there is neither
	fnuz     bool  // a sign bit alone is NaN, not -0
	unsigned bool  // all bits are the magnitude's, and -0 and negative values have no code

	// Codes are integers in two's complement. They are rounded as if they were the
	// subnormals of a format whose normal values are far above them.
	integer bool
}

// hasInf reports whether a code is an infinity.
func (l *layout) hasInf() bool { return l.overflow != l.max && l.overflow != l.nan }

var layouts = [...]layout{
	E4M3:        {name: "E4M3", bits: 8, mantissa: 3, bias: 7, max: 0x7E, nan: 0x7F, overflow: 0x7F},
	E5M2:        {name: "E5M2", bits: 8, mantissa: 2, bias: 15, max: 0x7B, nan: 0x7F, overflow: 0x7C},
	E4M3FNUZ:    {name: "E4M3FNUZ", bits: 8, mantissa: 3, bias: 8, max: 0x7F, nan: 0x80, overflow: 0x80, fnuz: true},
	E5M2FNUZ:    {name: "E5M2FNUZ", bits: 8, mantissa: 2, bias: 16, max: 0x7F, nan: 0x80, overflow: 0x80, fnuz: true},
	E2M1:        {name: "E2M1", bits: 4, mantissa: 1, bias: 1, max: 0x07, nan: 0x07, overflow: 0x07},
	E2M3:        {name: "E2M3", bits: 6, mantissa: 3, bias: 1, max: 0x1F, nan: 0x1F, overflow: 0x1F},
	E3M2:        {name: "E3M2", bits: 6, mantissa: 2, bias: 3, max: 0x1F, nan: 0x1F, overflow: 0x1F},
	E4M3IEEE:    {name: "E4M3IEEE", bits: 8, mantissa: 3, bias: 7, max: 0x77, nan: 0x7C, overflow: 0x78},
	E3M4:        {name: "E3M4", bits: 8, mantissa: 4, bias: 3, max: 0x6F, nan: 0x78, overflow: 0x70},
	E4M3B11FNUZ: {name: "E4M3B11FNUZ", bits: 8, mantissa: 3, bias: 11, max: 0x7F, nan: 0x80, overflow: 0x80, fnuz: true},
	MXINT8:      {name: "MXINT8", bits: 8, mantissa: 8, bias: -1, max: 0x7F, nan: 0x7F, overflow: 0x7F, integer: true},
}

// sign returns the bit of the sign; 0 if there is none.
func (l *layout) sign() uint8 {
	if l.unsigned {
		return 0
	}
	return 1 << (l.bits - 1)
}

// magnitude returns the bits below that of the sign.
func (l *layout) magnitude() uint8 {
	if l.unsigned {
		return 1<<l.bits - 1
	}
	return l.sign() - 1
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
	return 0, sentinel.Errorf(ErrFormat, "fp8: unknown format %q: want %s", name, formatNames())
}

// formatNames lists the names: "E4M3, ... or MXINT8".
func formatNames() string {
	var names []string
	for _, f := range Formats() {
		names = append(names, f.String())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
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

// Bits returns the number of bits of a code: 4, 6 or 8.
func (f Format) Bits() int { return f.layout().bits }

// Mantissa returns the number of explicit mantissa bits; of MXINT8, the bits of a
// magnitude, 7.
func (f Format) Mantissa() int {
	if l := f.layout(); !l.integer {
		return l.mantissa
	}
	return 7
}

// Bias returns the exponent bias. That of MXINT8 is 0: its values are those of a format
// with no bits of exponent, all of them subnormal.
func (f Format) Bias() int {
	if l := f.layout(); !l.integer {
		return l.bias
	}
	return 0
}

// MaxCode returns the code of the largest finite value.
func (f Format) MaxCode() byte { return f.layout().max }

// NaNCode returns the code of the positive NaN, or of the only one. Formats without one
// have the largest value in its place, see [NaN].
func (f Format) NaNCode() byte { return f.layout().nan }

// HasNaN reports whether f has a NaN.
func (f Format) HasNaN() bool { l := f.layout(); return l.nan != l.max }

// HasInf reports whether f has infinities.
func (f Format) HasInf() bool { l := f.layout(); return l.overflow != l.nan }

// Max returns the largest finite value. MXINT8 has -2, too, which is larger in magnitude.
func (f Format) Max() float32 { return f.table()[f.layout().max] }

// MinNormal returns the smallest normal value; of MXINT8, which has no subnormal ones,
// the smallest positive value.
func (f Format) MinNormal() float32 {
	l := f.layout()
	if l.integer {
		return f.table()[1]
	}
	return f.table()[1<<l.mantissa]
}

// MinSubnormal returns the smallest positive value.
func (f Format) MinSubnormal() float32 { return f.table()[1] }

// IsNaN reports whether code is a NaN of format f.
func (f Format) IsNaN(code byte) bool { return f.layout().isNaN(code) }

func (l *layout) isNaN(code byte) bool {
	if l.fnuz {
		return code&(l.sign()|l.magnitude()) == l.nan
	}
	return code&l.magnitude() > l.max && !l.isInf(code)
}

func (l *layout) isInf(code byte) bool {
	return l.overflow != l.nan && code&l.magnitude() == l.overflow
}

// isSubnormal reports whether code is of a subnormal value.
func (l *layout) isSubnormal(code byte) bool {
	c := code & l.magnitude()
	return c != 0 && c < 1<<l.mantissa && !l.integer
}

// IsInf reports whether code is an infinity of format f, of the given sign or,
// for sign 0, of either.
func (f Format) IsInf(code byte, sign int) bool {
	l := f.layout()
	negative := code&l.sign() != 0
	return l.isInf(code) && (sign == 0 || (sign < 0) == negative)
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

// value is the definition of a code (arXiv 2209.05433, Table 1; OCP Microscaling Formats
// 1.0, section 5.3).
func (l *layout) value(code uint8) float32 {
	const infinity = 0x7F800000
	if l.integer {
		return float32(int8(code)) / 64
	}
	sign := uint32(0)
	if code&l.sign() != 0 {
		sign = 1 << 31
	}
	switch {
	case l.isNaN(code):
		return math.Float32frombits(sign | positiveNaN)
	case l.isInf(code):
		return math.Float32frombits(sign | infinity)
	}
	magnitude := int(code & l.magnitude())
	exponent, fraction := magnitude>>l.mantissa, magnitude&(1<<l.mantissa-1)
	if exponent > 0 {
		fraction |= 1 << l.mantissa
		exponent--
	}
	v := float32(math.Ldexp(float64(fraction), exponent+1-l.bias-l.mantissa))
	return math.Float32frombits(sign | math.Float32bits(v))
}
