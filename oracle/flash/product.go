package flash

import (
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/canonical"
	"github.com/octavo-fp8/octavo/internal/number"
)

// factor is one of the rows that an instruction multiplies: numbers, and their codes where
// they have some.
type factor struct {
	values []float32
	codes  []byte
	format fp8.Format
}

func (f factor) slice(lo, hi int) factor {
	f.values = f.values[lo:hi]
	if f.codes != nil {
		f.codes = f.codes[lo:hi]
	}
	return f
}

// chain adds the products of a and b to c as the instructions do.
func (p *Product) chain(a, b factor, c float32) float32 {
	if p.Promote == 0 {
		return p.instructions(a, b, c)
	}
	for lo := 0; lo < len(a.values); lo += p.Promote {
		hi := min(lo+p.Promote, len(a.values))
		c += p.instructions(a.slice(lo, hi), b.slice(lo, hi), 0)
	}
	return c
}

func (p *Product) instructions(a, b factor, c float32) float32 {
	if p.Model.Float == 0 {
		return number.Canonical(p.Model.Dot(a.codes, b.codes, a.format, b.format, c))
	}
	return number.Canonical(p.Model.DotFloats(a.values, b.values, c))
}

// contractDot is the sum of products [lo, hi) of a and b in the order of package gemm;
// the products outside are +0.
func contractDot(a, b []float32, lo, hi int) (p float32) {
	const chunk = 32
	for from := lo / chunk * chunk; from < hi; from += chunk {
		var even, odd float32
		for i := max(from, lo); i < min(from+chunk, hi); i++ {
			if i%2 == 0 {
				even = plusProduct(even, a[i], b[i])
			} else {
				odd = plusProduct(odd, a[i], b[i])
			}
		}
		p += even + odd
	}
	return p
}

// plusProduct is a fused multiply-add. Most products are float32.
func plusProduct(sum, a, b float32) float32 {
	if t := float64(a) * float64(b); float64(float32(t)) == t {
		return sum + float32(t)
	}
	return canonical.FMA(a, b, sum)
}

// contractScaled is the element of C that package gemm computes of a row of Q and one of K:
// blocks of extent elements, with their scales, and then the outer ones.
func contractScaled(a, b []float32, extent int, scales func(at int) (sa, sb float32),
	alpha float32) (c float32) {
	for from := 0; from < len(a); from += extent {
		to := min(from+extent, len(a))
		sa, sb := scales(from)
		c = canonical.FMA(float32(contractDot(a[from:to], b[from:to], 0, to-from)*sa), sb, c)
	}
	return number.Canonical(float32(c * alpha))
}
