package oracle

import (
	"math"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/aligned"
)

// element is a code as a datapath sees it: significand·2^(exponent-M), where M is
// the number of mantissa bits of its format.
type element = aligned.Term

const (
	zeroExponent    = -4096 // of a zero: no product with it is the largest
	specialExponent = 8192  // of an infinity, ±1, or a NaN, 0: always the largest
	specialFrom     = 2048  // sums of exponents from here on are of such a code
)

var elementTables = makeElementTables()

func makeElementTables() [][256]element {
	tables := make([][256]element, len(fp8.Formats()))
	for _, f := range fp8.Formats() {
		for c := range 256 {
			tables[f][c] = newElement(f, byte(c))
		}
	}
	return tables
}

func newElement(f fp8.Format, c byte) element {
	v := float64(f.Float32(c))
	switch {
	case math.IsNaN(v):
		return element{Exponent: specialExponent}
	case math.IsInf(v, 0):
		return element{Significand: int16(math.Copysign(1, v)), Exponent: specialExponent}
	case v == 0:
		return element{Exponent: zeroExponent}
	}
	_, e := math.Frexp(v)
	e = max(e-1, 1-f.Bias())
	return element{Significand: int16(math.Ldexp(v, f.Mantissa()-e)), Exponent: int16(e)}
}

// decodeElements appends the elements of codes.
func decodeElements(dst []element, codes []byte, f fp8.Format) []element {
	table := &elementTables[f]
	for _, c := range codes {
		dst = append(dst, table[c])
	}
	return dst
}

// numberOf is a number of the element's class and sign.
func numberOf(x element) float32 {
	switch {
	case x.Exponent != specialExponent:
		return float32(x.Significand)
	case x.Significand == 0:
		return float32(math.NaN())
	}
	return float32(math.Inf(int(x.Significand)))
}

// addend is c of a step: a float32 or a float16, 0 where it is not finite.
type addend struct {
	value    float64
	exponent int
	special  class
}

// newAddend reads the bits of a float32 or a float16.
func newAddend(b uint64, l layout) addend {
	c := addend{value: valueOf(b, l), exponent: l.exponent(b)}
	if c.value-c.value != 0 {
		c.special = classOf(float32(c.value))
		c.value = 0
	}
	return c
}
