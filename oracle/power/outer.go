package power

import "github.com/octavo-fp8/octavo/tensor"

// outerOf returns the outer scale of row i as a multiplier, 1 where there is none.
func outerOf(t *tensor.Tensor, i int) float64 {
	g := float64(t.Outer.At(i))
	if t.Outer.Divide && !t.Outer.None() {
		return 1 / g
	}
	return g
}

// scaleOf returns the scale of an element, its outer scale included.
func scaleOf(t *tensor.Tensor, i, k int) float64 { return float64(t.Scale(i, k)) * outerOf(t, i) }

// outerRoundings is how often what outer scales are applied to is rounded: once for each
// operand that has them, and for the reciprocals of divisors.
func (p *population) outerRoundings() (n int) {
	for _, t := range []*tensor.Tensor{p.a, p.b} {
		if t.Outer.None() {
			continue
		}
		n++
		if t.Outer.Divide {
			n++
		}
	}
	return n
}
