package fp8

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// P3109 is a binary floating-point format of 3 to 8 bits as the IEEE working group P3109
// defines them (interim report, "Value tables"), which this type follows. They have one
// zero and one NaN. The exponent's bias is 2^(Bits-Precision-1), without a sign
// 2^(Bits-Precision); the NaN of a signed format is the code that elsewhere is -0, that of
// an unsigned one the last code. Infinities take the largest codes otherwise.
//
// These are codecs: other packages, and [Format], do not know them. The zero P3109 is not
// a format; see [P3109.Check]. Methods that convert panic if it is not valid.
type P3109 struct {
	Bits      int // of a code
	Precision int // of a value: significant bits, the implicit one included
	Signed    bool
	Infinite  bool // has infinities: P3109's "extended" domain
}

// ParseP3109 returns the format of a name such as "Binary8p4se": of 8 bits, with a precision of 4,
// signed (or u, unsigned) and extended (or f, finite).
func ParseP3109(name string) (P3109, error) {
	var f P3109
	var sign, domain rune
	n, err := fmt.Sscanf(name, "Binary%dp%d%c%c", &f.Bits, &f.Precision, &sign, &domain)
	f.Signed, f.Infinite = sign == 's', domain == 'e'
	if err != nil || n != 4 || f.String() != name || f.Check() != nil {
		return P3109{}, sentinel.Errorf(ErrFormat, "fp8: unknown P3109 format %q: want such as Binary8p4se", name)
	}
	return f, nil
}

// String returns the name of f, such as "Binary8p4se".
func (f P3109) String() string {
	sign, domain := 'u', 'f'
	if f.Signed {
		sign = 's'
	}
	if f.Infinite {
		domain = 'e'
	}
	return fmt.Sprintf("Binary%dp%d%c%c", f.Bits, f.Precision, sign, domain)
}

// MarshalText implements [encoding.TextMarshaler] by the format's name.
func (f P3109) MarshalText() ([]byte, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	return []byte(f.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler] as [ParseP3109] does.
func (f *P3109) UnmarshalText(text []byte) error {
	parsed, err := ParseP3109(string(text))
	if err == nil {
		*f = parsed
	}
	return err
}

// Check returns an error, which is [ErrFormat], unless f has 3 to 8 bits and a precision
// from 1 up to as many as there are bits, less one where there is a sign.
func (f P3109) Check() error {
	most := f.Bits
	if f.Signed {
		most--
	}
	if f.Bits < 3 || f.Bits > 8 || f.Precision < 1 || f.Precision > most {
		return sentinel.Errorf(ErrFormat, "fp8: there is no %v: want 3 to 8 bits and a precision from 1 to them, or one less with a sign", f)
	}
	return nil
}

const unknownP3109 = "fp8: no P3109 format"

// layout returns f as a layout, for which an unsigned format has its bit of the sign above
// the code.
func (f P3109) layout() layout {
	if f.Check() != nil {
		panic(unknownP3109)
	}
	l := layout{bits: f.Bits, mantissa: f.Precision - 1, fnuz: f.Signed, unsigned: !f.Signed}
	last := l.magnitude()
	if f.Signed {
		l.bias, l.nan = 1<<(f.Bits-f.Precision-1), l.sign()
	} else {
		l.bias, l.nan = 1<<(f.Bits-f.Precision), last
		last--
	}
	l.max, l.overflow = last, l.nan
	if f.Infinite {
		l.max, l.overflow = last-1, last
	}
	return l
}

// Float32 returns the value of code, exactly. Bits above the format's are ignored. The sign
// of NaN is not defined by P3109; it is positive here.
func (f P3109) Float32(code byte) float32 {
	l := f.layout()
	if v := l.value(code); v == v {
		return v
	}
	return math.Float32frombits(positiveNaN)
}

// Decode writes the values of src to dst[:len(src)]. It panics if dst is shorter.
func (f P3109) Decode(dst []float32, src []byte) {
	if len(dst) < len(src) {
		panic(shortDestination)
	}
	var values [256]float32
	for code := range values {
		values[code] = f.Float32(byte(code))
	}
	for i, code := range src {
		dst[i] = values[code]
	}
}

// Encode writes the codes of src to dst[:len(src)], each rounded once, as package fp8
// rounds under such a policy; src[i] is element i for stochastic rounding. P3109's
// SatFinite is the zero Policy, SatPropagate has InfPropagate, and OvfInf OverflowNonFinite
// as well, but that here it holds whatever the rounding. In unsigned formats a negative value
// that is not rounded to zero becomes what the policy makes of finite overflow, or of
// infinity: 0 where that saturates, otherwise NaN. It panics if dst is shorter than src or a
// value of the policy is unknown.
func (f P3109) Encode(dst []byte, src []float64, p Policy) {
	if len(dst) < len(src) {
		panic(shortDestination)
	}
	l := f.layout()
	p.mustBeKnown()
	e := Encoder{layout: &l, policy: p}
	if p.Rounding == Stochastic {
		e.random = newStream(p.Seed, 0)
	}
	for i, x := range src {
		dst[i], _ = e.encode64(x, uint64(i))
	}
}
