// Package aligned adds products as matrix units do: cut to the places of the largest.
package aligned

import (
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/kernels"
	"github.com/octavo-fp8/octavo/internal/race"
)

// Term is significand·2^exponent. Exponents must be from -2^13 to 2^13.
type Term struct{ Significand, Exponent int16 }

// Places say where products are cut: at exponent top each product p is
// p·2^Left·2^-(top+Right-e) toward zero, where e is the sum of its terms' exponents.
type Places struct {
	Left, Right int
	Least       int // top is at least that
}

// total is what a kernel returns.
type total struct{ value, cut, top int64 }

// kernel takes products of less than 32 bits once they are shifted to the left.
type kernel func(x, y *Term, n int, p *Places, t *total)

// Sum returns the sum of the products of x and y, which are as long, cut at the places
// p; how many lost something; and the exponent of the largest, or p.Least. Every
// |product|·2^Left must be below 2^bits, and bits at most 62.
func Sum(x, y []Term, p Places, bits int) (value int64, cut, top int) {
	y = y[:len(x)]
	if f, ok := sum.For(cpu.Current()); ok && len(x) > 0 && bits < 32 {
		race.Read(x)
		race.Read(y)
		var t total
		f(kernels.NoEscape(&x[0]), kernels.NoEscape(&y[0]), len(x), kernels.NoEscape(&p), kernels.NoEscape(&t))
		return t.value, int(t.cut), int(t.top)
	}
	return generic(x, y, p)
}

func generic(x, y []Term, p Places) (value int64, cut, top int) {
	y = y[:len(x)]
	top = p.Least
	for i, v := range x {
		top = max(top, int(v.Exponent)+int(y[i].Exponent))
	}
	left, far := p.Left&63, top+p.Right
	lostTerms := int64(0)
	for i, v := range x {
		w := y[i]
		t := int64(v.Significand) * int64(w.Significand) << left
		shift := min(far-int(v.Exponent)-int(w.Exponent), 62) & 63
		below := int64(1)<<shift - 1
		value += (t + t>>63&below) >> shift
		lostTerms += (t&below + below) >> shift // 1 if some of those bits are set
	}
	return value, int(lostTerms), top
}
