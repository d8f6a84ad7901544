package fault

import (
	"slices"

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
