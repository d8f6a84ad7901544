package explore

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/page"
)

// one is a value in a format.
type one struct {
	kind
	code  byte
	value float32
	ulp   float64 // between the values of the format around x, or its last two
	err   float64 // in ulp
	what  string
}

// encode is x in a format.
func (k kind) encodeOne(x float32, p fp8.Policy) one {
	o := one{kind: k}
	code := []byte{0}
	k.encode(code, []float32{x}, p)
	o.code, o.value = code[0], k.value(code[0])
	below, above, ok := k.around(x)
	o.ulp = above - below
	o.err = (float64(o.value) - float64(x)) / o.ulp
	switch {
	case x != x:
		o.what = "NaN"
		if o.value == o.value {
			o.what = "no NaN in the format"
		}
	case o.value-o.value != 0:
		o.what = "not finite"
	case math.IsInf(float64(x), 0):
		o.what = "saturated"
	case o.value == x:
		o.what = "exact"
	case !ok && x > 0 == (o.value > 0) && o.value != 0:
		o.what = "beyond the range"
	case o.value == 0:
		o.what = "flushed to zero"
	case !k.signed && x < 0:
		o.what = "no sign in the format"
	default:
		o.what = "rounded"
	}
	return o
}

// grid returns the finite values of a format, ascending, each once.
func (k kind) grid() []float64 {
	var all []float64
	for code := range 1 << k.bits {
		if y := float64(k.value(byte(code))); y-y == 0 {
			all = append(all, y)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// around returns the neighbours in a format between which x lies, or the lower of which it is, and
// false and the last two where x is beyond them.
func (k kind) around(x float32) (below, above float64, ok bool) {
	grid := k.grid()
	at, found := slices.BinarySearch(grid, float64(x))
	last := len(grid) - 1
	ok = found || at > 0 && at <= last
	if !found {
		at--
	}
	at = min(max(at, 0), last-1)
	return grid[at], grid[at+1], ok
}

// fields writes a code's bits: sign, exponent and mantissa.
func (o one) fields() string {
	text := fmt.Sprintf("%0*b", o.bits, o.code)
	if strings.HasPrefix(o.name, "MXINT") {
		return text
	}
	var parts []string
	if o.signed {
		parts, text = append(parts, text[:1]), text[1:]
	}
	cut := len(text) - o.mantissa
	for _, part := range []string{text[:cut], text[cut:]} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " ")
}

// putValue shows a value in every format, and says what it is in one.
func putValue(b *page.Body, no int, x float32, f fp8.Format, p fp8.Policy) {
	var all []one
	for _, k := range kinds {
		all = append(all, k.encodeOne(x, p))
	}
	b.Put("<p><b>%s</b></p>\n<div class=\"beside\">", all[f].sentence(no, x))
	if x-x == 0 {
		b.Put("%s", lines(x, all))
	}
	b.Put("<div class=\"dense\">")
	b.Table(page.Table{
		Label: "The value in each format",
		Columns: append(append(page.Columns(page.Whole, "format"), page.Columns(page.Number, "code", "bits", "value", "error", "in ulp")...),
			page.Columns(page.Whole, "what happened")...),
		Rows: page.Rows(all, func(o one) []any {
			err, ulps := "-", "-"
			if d := float64(o.value) - float64(x); d-d == 0 {
				err, ulps = fmt.Sprintf("%.3g", d), fmt.Sprintf("%.3g", o.err)
			}
			return []any{o.name, fmt.Sprintf("%02X", o.code), o.fields(), number(o.value), err, ulps, o.what}
		}),
	})
	b.Put("</div></div>\n")
}

// sentence says what a value is in a format.
func (o one) sentence(no int, x float32) string {
	text := fmt.Sprintf("Value %d, %s, in %s is %s, code %02X", no, number(x), o.name, number(o.value), o.code)
	switch {
	case o.what != "rounded":
		return text + ": " + o.what + "."
	case o.err < 0:
		return text + fmt.Sprintf(": %.2g ulp below it.", -o.err)
	}
	return text + fmt.Sprintf(": %.2g ulp above it.", o.err)
}

// lines draws the values of each format near x on one axis.
func lines(x float32, all []one) page.HTML {
	const width, left, step, top = 360.0, 98.0, 22.0, 30.0
	reach := 0.4 * math.Abs(float64(x))
	if x == 0 {
		reach = 4 * float64(fp8.E4M3.MinSubnormal())
	}
	lo, hi := float64(x)-reach, float64(x)+reach
	place := func(y float64) float64 { return left + 8 + (y-lo)/(hi-lo)*(width-left-16) }
	var b page.Body
	b.Put(`<svg class="lines" viewBox="0 0 %s %s" width="%s" role="img" aria-label="Values of each format near %s">`,
		width, top+step*float64(len(all))+4, width, number(x))
	b.Put(`<line class="at" x1="%s" x2="%s" y1="%s" y2="%s"/>`, coordinate(place(float64(x))), coordinate(place(float64(x))), top-6, top+step*float64(len(all)))
	b.Put(`<text x="%s" y="%s" text-anchor="middle">%s</text><text x="%s" y="%s">%s</text><text x="%s" y="%s" text-anchor="end">%s</text>`,
		coordinate(place(float64(x))), top-12, number(x), left, top-12, fmt.Sprintf("%.3g", lo), width-2, top-12, fmt.Sprintf("%.3g", hi))
	for i, o := range all {
		y := top + step*(float64(i)+0.5)
		b.Put(`<text x="0" y="%s">%s</text><line class="axis" x1="%s" x2="%s" y1="%s" y2="%s"/>`, y+4, o.name, left, width, y, y)
		var path strings.Builder
		for _, v := range o.grid() {
			if v >= lo && v <= hi {
				fmt.Fprintf(&path, "M%.5g %.5gv10", place(v), y-5)
			}
		}
		b.Put(`<path class="ticks" d="%s"/>`, path.String())
		if v := float64(o.value); v >= lo && v <= hi {
			b.Put(`<circle class="to" cx="%s" cy="%s" r="4"/>`, coordinate(place(v)), y)
		}
	}
	b.Put("</svg>\n")
	return b.HTML()
}
