package fault

import (
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
)

// applyCodes applies a fault that reads other codes.
func applyCodes(read func(f Fault, was operand) func(dst []byte, i int)) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		if f.Of != B {
			c.a.codes = read(f, p.a)
		}
		if f.Of != A {
			c.b.codes = read(f, p.b)
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

func codesFlushed(_ Fault, was operand) func(dst []byte, i int) {
	var flushed [256]byte
	least := was.format.MinNormal()
	for c := range flushed {
		if v := was.format.Float32(byte(c)); !(v > -least && v < least) {
			flushed[c] = byte(c)
		}
	}
	return mapped(was, &flushed)
}

func readNaNAsZero(_ Fault, was operand) func(dst []byte, i int) {
	var table [256]byte
	for c := range table {
		if !was.format.IsNaN(byte(c)) {
			table[c] = byte(c)
		}
	}
	return mapped(was, &table)
}

func mapped(was operand, table *[256]byte) func(dst []byte, i int) {
	return func(dst []byte, i int) {
		for k, c := range was.t.Row(i) {
			dst[k] = table[c]
		}
	}
}

func textOfSwapped(f Fault) string {
	return fmt.Sprintf("every %d codes of %s are read in reverse", f.By, f.Of.words())
}

func listSwapped(p *problem, _ bool) (all []Fault) {
	for _, s := range []Side{A, B} {
		for _, n := range []int{2, 4, 8, 16} {
			if n == 2 && (p.A.Format.Bits() == 4 || p.B.Format.Bits() == 4) {
				continue // these are nibbles, or change what the other's nibbles do
			}
			all = append(all, Fault{Kind: CodesSwapped, Of: s, By: n})
		}
	}
	return all
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
	for _, side := range f.Of.each() {
		if format := p.tensor(side).Format; format.Bits() != 4 {
			return notHere("codes of %v are no nibbles", format)
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

func textOfFormat(f Fault) string {
	return fmt.Sprintf("the codes of %s are read as %v", f.Of.words(), f.Format)
}

func listFormats(p *problem, _ bool) (all []Fault) {
	for _, f := range mistaken[p.A.Format] {
		all = append(all, Fault{Kind: WrongFormat, Of: A, Format: f})
	}
	for _, f := range mistaken[p.B.Format] {
		all = append(all, Fault{Kind: WrongFormat, Of: B, Format: f})
		if p.A.Format == p.B.Format {
			all = append(all, Fault{Kind: WrongFormat, Of: Both, Format: f})
		}
	}
	return all
}

func applyFormat(f Fault, p *problem, c *change) error {
	if !f.Format.Valid() {
		return notHere("format %v", f.Format)
	}
	if f.Of != B {
		c.a.format = f.Format
	}
	if f.Of != A {
		c.b.format = f.Format
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
