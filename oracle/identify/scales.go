package identify

import "github.com/octavo-fp8/octavo/internal/canonical"

// scaling is a way to add a block's sum p under scales sa and sb to c.
type scaling struct {
	name string
	add  func(p, sa, sb, c float32) float32
}

var scalings = []scaling{
	{"product-then-fma", func(p, sa, sb, c float32) float32 { return canonical.FMA(float32(sa*sb), p, c) }},
	{"a-then-b", func(p, sa, sb, c float32) float32 { return canonical.FMA(float32(p*sa), sb, c) }},
	{"b-then-a", func(p, sa, sb, c float32) float32 { return canonical.FMA(float32(p*sb), sa, c) }},
	{"product-then-add", func(p, sa, sb, c float32) float32 { return float32(float32(sa*sb)*p) + c }},
	{"a-then-b without fma", func(p, sa, sb, c float32) float32 { return float32(float32(p*sa)*sb) + c }},
	{"b-then-a without fma", func(p, sa, sb, c float32) float32 { return float32(float32(p*sb)*sa) + c }},
	{"rounded once", func(p, sa, sb, c float32) float32 { return roundedOnce(p, sa, sb, c) }},
}

// aThenB is the canonical order.
var aThenB = scalings[1]

// roundedOnce is p·sa·sb + c with p·sa·sb in float64, where it has up to 56 bits.
func roundedOnce(p, sa, sb, c float32) float32 {
	return float32(float64(float64(p)*(float64(sa)*float64(sb))) + float64(c))
}

// scaleOrders returns the names of the ways to apply scales that give all answers. In
// this product a block's sum has one term, so that it is exact.
func scaleOrders(a *Answers, p *Product) (names []string) {
	m, n, k := p.Size()
	codesA, codesB := p.values()
	block := p.blockK()
	for _, s := range scalings {
		same := true
		for i := 0; same && i < m; i++ {
			for j := 0; same && j < n; j++ {
				var c float32
				for lo := 0; lo < k; lo += block {
					c = s.add(codesA[i*k+lo]*codesB[j*k+lo], p.A.Scale(i, lo), p.B.Scale(j, lo), c)
				}
				same = formats[a.Type].Round(c) == a.C[p.Name][i*n+j]
			}
		}
		if same {
			names = append(names, s.name)
		}
	}
	return names
}
