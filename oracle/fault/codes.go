package fault

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
)

// applyCodes applies a fault that reads other codes.
func applyCodes(read func(f Fault, was operand) func(dst []byte, i int)) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		for side, o := range c.operands(f.Of) {
			o.codes = read(f, *p.operand(side))
		}
		return nil
	}
}

// readCodesRowsOff reads on at the beginning where the rows end.
func readCodesRowsOff(f Fault, was operand) func(dst []byte, i int) {
	return func(dst []byte, i int) {
		copy(dst, was.t.Row(((i+f.By)%was.rows+was.rows)%was.rows))
	}
}

func readCodesTransposed(_ Fault, was operand) func(dst []byte, i int) {
	return func(dst []byte, i int) {
		for k := range dst {
			at := k*was.rows + i
			dst[k] = was.t.Row(at / was.k)[at%was.k]
		}
	}
}

func readCodesSwapped(f Fault, was operand) func(dst []byte, i int) {
	return func(dst []byte, i int) {
		copy(dst, was.t.Row(i))
		for lo := 0; lo+f.By <= len(dst); lo += f.By {
			slices.Reverse(dst[lo : lo+f.By])
		}
	}
}

// readAsZero reads codes for which zero holds as 0.
func readAsZero(zero func(f fp8.Format, code byte) bool) func(Fault, operand) func(dst []byte, i int) {
	return func(_ Fault, was operand) func(dst []byte, i int) {
		return func(dst []byte, i int) {
			for k, c := range was.t.Row(i) {
				if dst[k] = c; zero(was.format, c) {
					dst[k] = 0
				}
			}
		}
	}
}

func isSubnormal(f fp8.Format, code byte) bool {
	v, least := f.Float32(code), f.MinNormal()
	return v > -least && v < least
}

// applyDecode has codes read as other numbers than those of their format: read returns the
// number, or ok false where it is the right one.
func applyDecode(read func(f fp8.Format, code byte) (v float64, ok bool)) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		for side, o := range c.operands(f.Of) {
			d := &decoded{values: *values(o.format)}
			other := false
			for code := range 256 {
				if v, ok := read(o.format, byte(code)); ok {
					d.values[code] = v
					other = other || p.operand(side).used[code]
				}
				d.magnitudes[code] = finiteMagnitude(o.format, d.values[code])
			}
			if !other {
				return notHere("no code of %v is read otherwise", side)
			}
			o.decode = d
		}
		return c.plainly(p)
	}
}

// asNormal reads exponent 0 as others are: with a leading 1, under half the scale of
// subnormal numbers. Codes of 0 are read so if zeros says so.
func asNormal(zeros bool) func(f fp8.Format, code byte) (v float64, ok bool) {
	return func(f fp8.Format, code byte) (float64, bool) {
		if f == fp8.MXINT8 || !isSubnormal(f, code) || f.IsZero(code) && !zeros {
			return 0, false
		}
		v := float64(f.MinNormal())/2 + math.Abs(float64(f.Float32(code)))/2
		if code>>(f.Bits()-1)&1 != 0 {
			v = -v
		}
		return v, true
	}
}

// infAs reads infinities as what of makes of the format's largest number.
func infAs(of func(most float64) float64) func(f fp8.Format, code byte) (v float64, ok bool) {
	return func(f fp8.Format, code byte) (float64, bool) {
		sign := 1
		if f.IsInf(code, -1) {
			sign = -1
		}
		return math.Copysign(of(float64(f.Max())), float64(sign)), f.IsInf(code, 0)
	}
}

// asNumbers reads infinities and NaN as the numbers that their bits would be, in formats that
// have those of a sign.
func asNumbers(f fp8.Format, code byte) (float64, bool) {
	if f.IsInf(code, 0) || f.IsNaN(code) && !isMinusZero(f, code) {
		mantissa := 1 << f.Mantissa()
		magnitude := int(code) & (1<<(f.Bits()-1) - 1)
		v := math.Ldexp(1+float64(magnitude%mantissa)/float64(mantissa), magnitude/mantissa-f.Bias())
		if code>>(f.Bits()-1)&1 != 0 {
			v = -v
		}
		return v, true
	}
	return 0, false
}

// isMinusZero reports whether a code is a NaN whose bits are those of -0 in other formats.
func isMinusZero(f fp8.Format, code byte) bool {
	return f.IsNaN(code) && int(code) == 1<<(f.Bits()-1)
}

// hasCode reports whether a side has a code for which is holds.
func hasCode(is func(f fp8.Format, code byte) bool) func(f Fault, p *problem) bool {
	return func(f Fault, p *problem) bool {
		for _, s := range []Side{A, B} {
			if f.Of != s && f.Of != Both {
				continue
			}
			o, there := p.operand(s), false
			for code, used := range o.used {
				there = there || used && is(o.format, byte(code))
			}
			if !there {
				return false
			}
		}
		return true
	}
}

func isOtherNaN(f fp8.Format, code byte) bool { return f.IsNaN(code) && !isMinusZero(f, code) }

// isNoNibbles leaves nibbles to the fault of their own: pairs of codes that are nibbles, or
// change what the other's nibbles do.
func isNoNibbles(f Fault, p *problem) bool {
	return f.By != 2 || p.A.Format.Bits() != 4 && p.B.Format.Bits() != 4
}

// nibblesSwapped reads the two codes of each byte in the other order. What is beyond the
// end of an odd row is 0.
func nibblesSwapped(_ Fault, was operand) func(dst []byte, i int) {
	return func(dst []byte, i int) {
		copy(dst, was.t.Row(i))
		for k := 0; k+2 <= len(dst); k += 2 {
			dst[k], dst[k+1] = dst[k+1], dst[k]
		}
		if len(dst)%2 == 1 {
			dst[len(dst)-1] = 0
		}
	}
}

func applyNibbles(f Fault, p *problem, c *change) error {
	for _, o := range c.operands(f.Of) {
		if o.format.Bits() != 4 {
			return notHere("codes of %v are no nibbles", o.format)
		}
	}
	return applyCodes(nibblesSwapped)(f, p, c)
}

// mistaken lists what a format's codes are taken for.
var mistaken = map[fp8.Format][]fp8.Format{
	fp8.E4M3:     {fp8.E4M3FNUZ, fp8.E5M2},
	fp8.E5M2:     {fp8.E5M2FNUZ, fp8.E4M3},
	fp8.E4M3FNUZ: {fp8.E4M3, fp8.E5M2FNUZ},
	fp8.E5M2FNUZ: {fp8.E5M2, fp8.E4M3FNUZ},
	fp8.E2M3:     {fp8.E3M2},
	fp8.E3M2:     {fp8.E2M3},
	fp8.E4M3IEEE: {fp8.E4M3, fp8.E4M3FNUZ},
	fp8.E3M4:     {fp8.E4M3},

	fp8.E4M3B11FNUZ: {fp8.E4M3FNUZ},
}

func listFormats(p *problem, _ bool) (all []Fault) {
	for _, f := range mistaken[p.A.Format] {
		all = append(all, Fault{Of: A, Format: f})
	}
	for _, f := range mistaken[p.B.Format] {
		all = append(all, Fault{Of: B, Format: f})
		if p.A.Format == p.B.Format {
			all = append(all, Fault{Of: Both, Format: f})
		}
	}
	return all
}

func applyFormat(f Fault, p *problem, c *change) error {
	if !f.Format.Valid() {
		return notHere("format %v", f.Format)
	}
	for _, o := range c.operands(f.Of) {
		o.format = f.Format
	}
	return nil
}

// applyOperandsExchanged computes B·Aᵀ, of shape [N, M], whose elements C has in order.
func applyOperandsExchanged(_ Fault, p *problem, c *change) error {
	c.a, c.b = p.b, p.a
	c.from = func(i, j int, add func(i, j int)) {
		at := i*p.n + j
		add(at/p.m, at%p.m)
	}
	return nil
}

func applyCodesExchanged(_ Fault, p *problem, c *change) error {
	if p.m != p.n {
		return notHere("A of %d rows, B of %d", p.m, p.n)
	}
	c.a.format, c.b.format = p.b.format, p.a.format
	c.a.codes = func(dst []byte, i int) { copy(dst, p.B.Row(i)) }
	c.b.codes = func(dst []byte, i int) { copy(dst, p.A.Row(i)) }
	return nil
}

// applyPair has two neighbouring codes of K exchanged.
func applyPair(f Fault, p *problem, c *change) error {
	if err := checkRange(f, p); err != nil || f.To != f.From+2 {
		return notHere("codes %d to %d as a pair", f.From, f.To)
	}
	for _, o := range c.operands(f.Of) {
		if f.Kind == nibblePair && (o.format.Bits() != 4 || f.From%2 != 0) {
			return notHere("codes %d and %d of %v are no byte", f.From, f.From+1, o.format)
		}
		was := *o
		o.codes = func(dst []byte, i int) {
			copy(dst, was.row(nil, i))
			dst[f.From], dst[f.From+1] = dst[f.From+1], dst[f.From]
		}
	}
	return nil
}

func textOfOneCode(f Fault) string {
	s := fmt.Sprintf("code %d of row %d of %s is read as ", f.From, f.By, f.Of.words())
	codes, err := numbers(f.Values, strconv.Atoi)
	if err != nil || len(codes) == 0 {
		return s + f.Values
	}
	words := make([]string, 0, 8)
	for _, c := range codes[:min(len(codes), cap(words))] {
		words = append(words, fmt.Sprintf("%02X", c))
	}
	if len(codes) > len(words) {
		words = append(words, "one of the next to those")
	}
	return s + strings.Join(words, " or ")
}

// applyOneCode has one code of one row read as another: the first of f.Values, of which the
// others cannot be told from it.
func applyOneCode(f Fault, p *problem, c *change) error {
	codes, err := numbers(f.Values, strconv.Atoi)
	if failed := checkRange(f, p); failed != nil || err != nil || f.To != f.From+1 || len(codes) == 0 || codes[0] < 0 || codes[0] > 255 {
		return notHere("code %d of K read as %s", f.From, f.Values)
	}
	for side, o := range c.operands(f.Of) {
		if f.By < 0 || f.By >= o.rows {
			return notHere("row %d of %v", f.By, side)
		}
		was := *o
		o.codes = func(dst []byte, i int) {
			if copy(dst, was.row(nil, i)); i == f.By {
				dst[f.From] = byte(codes[0])
			}
		}
	}
	return nil
}
