package agree

import (
	"math"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
)

// element is what an element of the output must be.
type element struct {
	exact float64
	bound float64 // of the distance of a correct kernel's result; +Inf where there is none
	unit  float64 // what roundings at random come to
}

// rules are how elements and their bounds follow from what is multiplied.
type rules struct {
	x, w   *operand
	of     number.Format
	kernel oracle.Kernel
	biased bool
	width  int // products under one pair of scales
	blocks int
	scale  float64 // the largest
}

// roundoff is that of float32.
const roundoff = 0x1p-24

// rulesOf returns the rules of a product of two operands of the same length.
func (j *judge) rulesOf(x, w *operand) rules {
	k, blocks := j.claim.Kernel, max(x.blocks, w.blocks)
	if x.codes == nil || w.codes == nil {
		k = oracle.Kernel{} // models of tensor cores are of codes
	}
	return rules{x, w, j.Of.format(), k, j.Bias != nil, (x.cols + blocks - 1) / blocks, blocks, max(x.scale, w.scale, 1)}
}

// relative bounds the error of a sum of n terms, relative to the sum of their magnitudes.
func (r *rules) relative(n int) float64 {
	// Each of the n products and sums rounds; a block's sum is scaled three times, outer
	// scales come twice, and the codes may have been multiplied by their scales before.
	steps := float64(n+r.blocks+8) * roundoff
	e := steps / (1 - steps)
	if r.kernel.Model.Name != "" {
		e += r.kernel.RelativeError(r.width) * (1 + e)
	}
	return e
}

// element returns that of a row of each operand and a bias. Sums in float64 are off by less
// than 2^-50 of the sum of magnitudes.
func (r *rules) element(i, k int, bias float64) element {
	a := r.x.row(i)
	b := r.w.row(k)[:len(a)]
	var s0, s1, m0, m1 float64
	at := 0
	for ; at+1 < len(a); at += 2 {
		p0, p1 := float64(a[at]*b[at]), float64(a[at+1]*b[at+1])
		s0 += p0
		s1 += p1
		m0 += math.Abs(p0)
		m1 += math.Abs(p1)
	}
	if at < len(a) {
		p := float64(a[at] * b[at])
		s0 += p
		m0 += math.Abs(p)
	}
	sum, size := s0+s1, m0+m1
	if r.kernel.Model.Name != "" {
		size = 0
		ma, mb := r.x.magnitudes(i), r.w.magnitudes(k)
		for at := range ma {
			size += math.Abs(float64(ma[at] * mb[at]))
		}
	}
	exact := sum + bias
	if math.IsNaN(exact) || math.IsInf(exact, 0) {
		return element{exact: exact}
	}
	n := float64(len(a))
	error := size*(r.relative(len(a))+(n+2)*0x1p-52) + (n+float64(r.blocks))*0x1p-148*r.scale
	e := element{exact: exact}
	e.unit = r.ulp(exact)/2 + roundoff*size/4
	if r.biased { // it may be added to a result that was rounded already
		error += r.ulp(math.Abs(sum)+error)/2 + roundoff*(math.Abs(bias)+math.Abs(exact))
		e.unit += r.ulp(sum) / 2
	}
	e.bound = error + r.ulp(math.Abs(exact)+error)/2
	if size > math.MaxFloat32/2 || math.Abs(exact)+error > r.of.Max()/2 {
		e.bound = math.Inf(1) // something may overflow
	}
	return e
}

// ulp returns the distance of numbers of the output's type about x.
func (r *rules) ulp(x float64) float64 {
	_, e := math.Frexp(x)
	if x == 0 {
		e = -2000
	}
	return math.Ldexp(1, max(e-1, 1-r.of.Bias())-r.of.Mantissa)
}

// fit says how a result fits an element.
func (e element) fit(got float32) (fits, bounded bool, off float64) {
	g := float64(got)
	switch {
	case math.IsNaN(e.exact):
		return math.IsNaN(g), true, 0
	case math.IsInf(e.exact, 0):
		return g == e.exact || math.IsNaN(g), true, 0
	}
	off = math.Abs(g - e.exact)
	if math.IsInf(e.bound, 1) {
		return true, false, off
	}
	return off <= e.bound, true, off
}
