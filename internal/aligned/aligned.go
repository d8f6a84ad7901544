// Package aligned adds products as matrix units do: cut to the places of the largest.
package aligned

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/race"
)

// Columns are those of a panel: element k of all columns, one after the other, and then
// element k+1.
const Columns = 16

// Term is significand·2^exponent. Exponents must be from -2^12 to 2^13.
type Term struct{ Significand, Exponent int16 }

// Places say where products are cut: at exponent top each product p is
// p·2^Left·2^-(top+Right-e) toward zero, where e is the sum of its terms' exponents.
type Places struct{ Left, Right int }

// Sums are those of some columns, at most Columns.
type Sums struct {
	Top   [Columns]int32 // exponents of the largest products
	Cut   [Columns]int32 // how many products lost something
	Value [Columns]int64 // of products that are cut
}

// kernel computes the sums of a panel.
type kernel func(x, y *Term, n int, p *Places, s *Sums)

// mostBits are those of products whose sums of 16 fit 32 bits with their sign, which
// kernels add to one of 64.
const mostBits = 27

const short = "aligned: y is shorter than its shape says, or has too many columns"

// Multiply sums the products of x and each column of y, which has as many elements: element
// k of column j is y[k*columns+j]. A column's top is at least Top, as it was before. Every
// |product|·2^Left must be below 2^bits, and bits at most 62 less what a sum of so many
// products needs. It panics if y is too short or has more than Columns.
func (s *Sums) Multiply(x, y []Term, columns int, p Places, bits int) {
	if columns > Columns || len(y) < len(x)*columns {
		panic(short)
	}
	if f, ok := multiply.For(cpu.Current()); ok && columns == Columns && len(x) > 0 && bits <= mostBits {
		s.note(x, y[:len(x)*Columns])
		f(kernels.NoEscape(&x[0]), kernels.NoEscape(&y[0]), len(x), kernels.NoEscape(&p), kernels.NoEscape(s))
		return
	}
	for j := range columns {
		s.column(x, y, columns, j, p)
	}
}

// note tells the race detector what kernels touch.
func (s *Sums) note(x, y []Term) {
	race.Read(x)
	race.Read(y)
	race.Write(s.Top[:])
	race.Write(s.Cut[:])
	race.Write(s.Value[:])
}

// column is Multiply for one column.
func (s *Sums) column(x, y []Term, columns, j int, p Places) {
	top := s.Top[j]
	at := j
	for _, v := range x {
		top = max(top, int32(v.Exponent)+int32(y[at].Exponent))
		at += columns
	}
	left, far := p.Left&63, int(top)+p.Right
	value, cut := int64(0), int64(0)
	at = j
	for _, v := range x {
		w := y[at]
		at += columns
		t := int64(v.Significand) * int64(w.Significand) << left
		shift := min(far-int(v.Exponent)-int(w.Exponent), 62) & 63
		below := int64(1)<<shift - 1
		value += (t + t>>63&below) >> shift
		cut += (t&below + below) >> shift // 1 if some of those bits are set
	}
	s.Top[j], s.Cut[j], s.Value[j] = top, int32(cut), value
}
