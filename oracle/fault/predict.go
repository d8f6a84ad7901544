package fault

import (
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle/explain"
)

// guess is what a kernel with a fault gives for an element, before that is rounded to the
// type of C, and how far from it the kernel may be.
type guess struct {
	value, tolerance float64
	unknown          bool // the fault does not say
	// partly says that a scale is not known, and was taken for 0.
	partly bool
}

// scratch is what a goroutine works with.
type scratch struct{ x, y []byte }

// guess predicts element e under change c.
func (s *sample) guess(ctx context.Context, c *change, e *element, w *scratch) (guess, error) {
	if c.unknown != nil && c.unknown(e.i, e.j) {
		return guess{unknown: true}, nil
	}
	if c.exact {
		v, err := c.exactly(ctx, e.i, e.j)
		if err != nil {
			return guess{}, err
		}
		return guess{value: float64(c.finish(v, e.i, e.j)), tolerance: float64(e.all.total * 0x1p-22)}, nil
	}
	var g guess
	var total float64
	add := func(i, j int) {
		sum, known := s.product(c, e, i, j, w)
		g.value += sum.value
		total += sum.total
		g.partly = g.partly || !known
	}
	if c.from == nil {
		add(e.i, e.j)
	} else {
		c.from(e.i, e.j, add)
	}
	g.value *= c.factor
	total *= math.Abs(c.factor)
	c.addends(e.i, e.j, func(x float32) {
		g.value += float64(x)
		total += math.Abs(float64(x))
	})
	g.tolerance = float64(total*(s.coefficient+c.slack)) + s.vanishing(total)
	if c.after != nil && c.rounded == Float32 {
		g.value = float64(c.after(float32(g.value), e.i, e.j))
	}
	return g, nil
}

// vanishing is what a product may lose to the end of float32's range.
func (s *sample) vanishing(total float64) float64 {
	if total == 0 {
		return 0
	}
	return float64(float64(s.p.k) * 0x1p-147 * (1 + total))
}

// product returns an element of the product of c's operands, without addends, and
// whether all of its scales are known.
func (s *sample) product(c *change, e *element, i, j int, w *scratch) (sum magnitude, known bool) {
	own := i == e.i && j == e.j
	if own && c.extra != 0 {
		lo, okLo := slices.BinarySearch(s.cuts, c.lo)
		hi, okHi := slices.BinarySearch(s.cuts, c.hi)
		if okLo && okHi {
			sum = e.upTo[lo].plus(e.from[hi])
			if c.extra != -1 {
				sum = sum.plus(e.between(lo, hi).times(1 + c.extra))
			}
			return sum, true
		}
	}
	right := func(o, was *operand) bool {
		return o.t == was.t && o.codes == nil && o.decode == nil && o.format == was.format
	}
	if !own || !right(&c.a, &s.p.a) || !right(&c.b, &s.p.b) {
		return s.dot(c, i, j, w)
	}
	if c.a.scale == nil && c.b.scale == nil && c.placed == nil && c.a.sameOuter(&s.p.a) && c.b.sameOuter(&s.p.b) {
		return e.all, true
	}
	if c.a.width != s.p.a.width || c.b.width != s.p.b.width {
		return s.dot(c, i, j, w)
	}
	known = true
	ofA, ofB := c.scaleRows(i, j)
	for q := range e.sums {
		at := q * s.p.block
		sum.addBlock(e.sums[q], e.totals[q], c.a.scaleAt(ofA, at/c.a.width), c.b.scaleAt(ofB, at/c.b.width), &known)
	}
	return sum.times(c.a.factor(i) * c.b.factor(j)), known
}

// addBlock adds a block's sum and total, times its scales, unless one is not known.
func (m *magnitude) addBlock(sum, total float64, sa, sb float32, known *bool) {
	if isUnknown(sa) || isUnknown(sb) {
		*known = false
		return
	}
	*m = m.plus(magnitude{sum, total}.times(float64(sa) * float64(sb)))
}

// dot is an element of the product of c's operands, and whether all of its scales are
// known.
func (s *sample) dot(c *change, i, j int, w *scratch) (sum magnitude, known bool) {
	u, v := c.a.values(), c.b.values()
	mu, mv := c.a.magnitudes(s.aligned), c.b.magnitudes(s.aligned)
	known = true
	c.eachBlock(i, j, w, func(x, y []byte, sa, sb float32) {
		p, t := dot(x, y, u, v, mu, mv)
		sum.addBlock(p, t, sa, sb, &known)
	})
	return sum.times(c.a.factor(i) * c.b.factor(j)), known
}

// scaleRows returns the rows whose scales element (i, j) has.
func (c *change) scaleRows(i, j int) (ofA, ofB int) {
	if c.placed != nil {
		return c.placed(i, j)
	}
	return i, j
}

// eachBlock calls do with the codes of row i of A and of row j of B, as they are read, in each
// block of K, and with their scales.
func (c *change) eachBlock(i, j int, w *scratch, do func(x, y []byte, sa, sb float32)) {
	a, b := &c.a, &c.b
	w.x, w.y = slices.Grow(w.x[:0], a.k), slices.Grow(w.y[:0], b.k)
	x, y := a.row(w.x, i), b.row(w.y, j)
	block := min(a.width, b.width)
	i, j = c.scaleRows(i, j)
	for lo := 0; lo < a.k; lo += block {
		hi := min(lo+block, a.k)
		do(x[lo:hi], y[lo:hi], a.scaleAt(i, lo/a.width), b.scaleAt(j, lo/b.width))
	}
}

// exactly returns element (i, j) of the product as the kernel of c computes it, without
// addends.
func (c *change) exactly(ctx context.Context, i, j int) (float32, error) {
	var err error
	v := c.element(i, j, func(i, j int) float32 {
		if c.dot != nil {
			return c.dot(c, i, j)
		}
		v, failed := c.computed(ctx, i, j)
		if failed != nil {
			err = failed
		}
		return v
	})
	return v, err
}

// computed returns the product of row i of a and row j of b by c's kernel.
func (c *change) computed(ctx context.Context, i, j int) (float32, error) {
	var v [1]float32
	a, err := c.a.matrix(i)
	if err != nil {
		return 0, err
	}
	b, err := c.b.matrix(j)
	if err != nil {
		return 0, err
	}
	err = multiply(ctx, v[:], a, b, &c.kernel, 1)
	return v[0], err
}

// bits reports whether the kernel of c gives every bit of an element.
func bits[T gemm.Output](ctx context.Context, c *change, e *element) (bool, error) {
	v, err := c.exactly(ctx, e.i, e.j)
	if err != nil {
		return false, err
	}
	x := number.Float32(number.From[T](number.Canonical(c.finish(v, e.i, e.j))))
	return x != x && e.got != e.got || math.Float32bits(x) == math.Float32bits(float32(e.got)), nil
}

const (
	// mostEvidence is the most that one element counts for, in bits: as many as those of
	// float32, exactly.
	mostEvidence = 24
	// nonFinite is what it counts for if it is not finite, as it may be for many reasons.
	nonFinite = 4
	// guessed is the most that it counts for where a scale was taken for 0.
	guessed = 8
)

// fit compares a guess with an element. How unlikely it is that a wrong element fits by
// chance is its evidence, in bits: a result that is off by a distance for another reason
// is in the window of the guess with a probability of about the window's share of it.
func (s *sample) fit(c *change, g guess, e *element) (explain.Outcome, float64) {
	if g.unknown {
		return explain.Open, 0
	}
	tolerance := g.tolerance
	var evidence float64
	if c.rounded != Float32 {
		// The value on its way is a number of the narrower type.
		if !c.representable(e) {
			return explain.Refuted, 0
		}
		part := 0.5
		if c.cut {
			part = 1
		}
		tolerance += float64(part * c.rounded.place(math.Abs(g.value)+tolerance))
		of, _, _ := s.p.out.parameters()
		fraction, _, _ := c.rounded.parameters()
		evidence = float64(max(of-fraction, 0))
		if c.unordered && (e.got != e.got || math.IsInf(e.got, 0)) {
			if _, _, most := c.rounded.parameters(); e.all.total >= most*c.scale(e) {
				return explain.Fits, nonFinite
			}
			return explain.Refuted, 0
		}
		if c.unordered {
			// Each of K additions was rounded, and scales were applied, which takes bits.
			tolerance += float64(math.Ldexp(float64(s.p.k), -fraction-1) * e.all.total)
			evidence = max(evidence-4, 0)
		}
	}
	if s.p.out != Float32 {
		tolerance += float64(0.5 * s.p.out.place(math.Abs(g.value)+tolerance))
	}
	if c.fitted {
		tolerance *= 3 // the factor is as uncertain as the element that it was taken from
	}
	if c.overflows && e.got-e.got != 0 {
		if g.value != g.value && e.got != e.got || s.overflows(c, e) {
			return explain.Fits, nonFinite
		}
	}
	if !s.near(c, g.value, tolerance, e.got) {
		if g.partly {
			return explain.Open, 0
		}
		return explain.Refuted, 0
	}
	switch {
	case !e.wrong || evidence > 0:
	case e.got-e.got != 0:
		evidence = nonFinite
	case math.IsInf(e.distance, 0) && tolerance > 0:
		evidence = max(min(math.Log2(math.Abs(e.got)/tolerance), mostEvidence), nonFinite)
	case c.exact && float32(g.value) == float32(e.got):
		evidence = mostEvidence
	case e.distance > 0:
		evidence = explain.Evidence(e.distance, tolerance, mostEvidence)
	}
	if g.partly {
		evidence = min(evidence, guessed)
	}
	if e.wrong && evidence < 1 {
		return explain.Open, 0 // nearly as near to the right result
	}
	return explain.Fits, evidence
}

// overflows reports whether an element may be what it is, which is not finite, as parts of
// its sum are too large for float32 in some order of scales: a NaN takes parts of both signs.
func (s *sample) overflows(c *change, e *element) bool {
	const most = math.MaxFloat32
	var plus, minus float64
	ofA, ofB := c.scaleRows(e.i, e.j)
	for q, sum := range e.sums {
		at := q * s.p.block
		sa, sb := float64(c.a.scaleAt(ofA, at/c.a.width)), float64(c.b.scaleAt(ofB, at/c.b.width))
		if part := sum * max(sa*sb, sa, sb); part > 0 {
			plus += part
		} else {
			minus -= part
		}
	}
	return (plus > most || math.Signbit(e.got) && e.got == e.got) && (minus > most || !math.Signbit(e.got) && e.got == e.got)
}

// representable reports whether an element is a number of the type to which c rounds or,
// where sums are unordered, was before scales were applied.
func (c *change) representable(e *element) bool {
	if e.got != e.got || math.IsInf(e.got, 0) || c.p.out == BFloat16 && c.rounded == Float16 {
		return true // or rounded again
	}
	if !c.unordered {
		return float64(c.rounded.narrow(float32(e.got))) == e.got
	}
	sum := e.got / c.scale(e)
	return math.Abs(float64(c.rounded.narrow(float32(sum)))-sum) <= float64(0x1p-22*math.Abs(sum))
}

// scale is the product of an element's scales, where there is one pair, and of its outer
// scales.
func (c *change) scale(e *element) float64 {
	p := c.p
	return float64(p.a.rightScale(e.i, 0)) * float64(p.b.rightScale(e.j, 0)) * (p.a.factor(e.i) * p.b.factor(e.j))
}

// near reports whether got may be value, rounded to the type of C.
func (s *sample) near(c *change, value, tolerance, got float64) bool {
	out := s.p.out
	if c.rounded != Float32 {
		out = c.rounded
	}
	_, _, most := out.parameters()
	switch {
	case value != value || got != got:
		return value != value && got != got
	case math.IsInf(value, 0) || math.IsInf(got, 0) || c.rounded != Float32 && !c.unordered && math.Abs(got) == most:
		// An overflow, or nearly one; or the largest number, to which one was cut.
		return math.Abs(got) >= most && math.Signbit(got) == math.Signbit(value) && math.Abs(value)+tolerance >= most
	}
	return math.Abs(got-value) <= tolerance
}
