package oracle

import "github.com/octavo-fp8/octavo/tensor"

// outerBound bounds what outer scales do to an element. They may be applied before or
// after the sum of blocks, unless the order is known.
type outerBound struct {
	d      *derivation
	none   bool
	any    bool    // the order is not known
	factor float64 // their product
	below  float64 // the product of those below 1, or 1
	above  float64 // the product of those above 1, or 1
	least  float64 // the least magnitude that the sum of a block may have, or 1
	late   float64 // errors that were multiplied by the outer scales already
	reach  float64 // the largest magnitude that the sum may have on its way
}

// begin takes in the outer scales of element (i, j).
func (o *outerBound) begin(i, j int) {
	p := o.d.p
	if o.none = p.outers.none; o.none {
		return
	}
	o.any = !o.d.chained() && (o.d.orders == everyOrder || o.d.acc.Dequantized)
	o.least, o.below, o.above = 1, 1, 1
	for _, g := range [2]float64{multiplier(&p.outers.a, i), multiplier(&p.outers.b, j)} {
		o.below *= min(g, 1)
		o.above *= max(g, 1)
	}
	o.factor = p.outers.at(i, j).float64()
}

// multiplier is the outer scale of a row, or the reciprocal of a divisor.
func multiplier(o *tensor.Outer, i int) float64 {
	f := factor{1, 1}
	f.take(o, i)
	return f.float64()
}

// block takes in a block of n products, of total magnitude t. It reports whether an
// intermediate result may be infinite, or 0 times an infinity, where the exact one is not.
func (o *outerBound) block(t, sa, sb float64, n int, special bool) bool {
	d := o.d
	nothing := t == 0 || sa*sb == 0
	switch {
	case o.none, !o.any && nothing:
		return false
	case !o.any:
		o.least = min(o.least, float64(float64(sa*sb)*d.quantum))
		return false
	}
	largest, errors := t, 8.0
	if d.acc.Dequantized {
		largest, errors = max(t, d.maxA*d.maxB), float64(8*n)
	}
	high := float64(max(largest, 1) * float64(float64(max(sa, 1)*max(sb, 1))*o.above))
	// What overflows is no longer finite, but one over an infinite product of divisors is.
	ends := d.acc.Finite && !(d.p.a.Outer.Divide && d.p.b.Outer.Divide)
	if o.reach += high; o.reach >= layout32.overflow()/2 && !ends {
		return true
	}
	vanishes := float64(float64(min(sa, 1)*min(sb, 1))*float64(o.below*min(d.quantum, 1))) < vanishing
	if vanishes && !nothing && o.factor != 0 {
		o.late += float64(errors * float64(d.least*(1+high)))
		return special
	}
	return false
}

// end applies the outer scales to the sum of magnitudes and to its error.
func (o *outerBound) end(total, err float64) (scaledTotal, scaledErr float64) {
	if o.none {
		return total, err
	}
	if !o.any && total != 0 && o.factor != 0 && float64(o.least*o.below) < vanishing {
		// Of the product of the scales, of reciprocals and of the result.
		o.late += float64(4 * float64(o.d.least*(1+float64(total*o.above))))
	}
	return float64(total * o.factor), float64(err*o.factor) + o.late
}
