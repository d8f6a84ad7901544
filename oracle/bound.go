package oracle

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// Accumulation is what is known of how a kernel adds. The zero value is float32
// rounded to nearest, in an unknown order: within a block of K that has one pair
// of scales products are added in any order, with or without fused
// multiply-adds; the block's sum is scaled in any order of the scales; the
// scaled sums are added in any order. Package gemm, pairwise and split sums are
// such.
type Accumulation struct {
	// Truncated says that additions and multiplications round toward zero.
	Truncated bool `json:"truncated,omitempty"`
	// Dequantized says that codes are multiplied by their scales, in float32,
	// before products are formed and added, in any order.
	Dequantized bool `json:"dequantized,omitempty"`
	// Scales, where known, avoids bounds of +Inf for scales so extreme that only
	// another order would overflow.
	Scales ScaleOrder `json:"scales"`
	// Kernel, unless its Model is the zero Model, says that matrix instructions add
	// the products of a block, in steps of the model's L, whichever products are in a
	// step and in whatever order steps come. Its own Scales, if known, are used in
	// place of those above.
	Kernel Kernel `json:"kernel,omitzero"`
}

// Bound writes to bound, of shape [M, N], how far a kernel's C may be from the
// result of [Exact] for the same type T, operands and options, a priori: from
// the operands and what is known of the order of additions. A kernel that exceeds
// it is wrong. old is the old C where o.Accumulate asks for one, otherwise
// nil.
//
// With u the unit roundoff of float32, 2^-24 to nearest and 2^-23 toward zero, a
// block of n products, all exact, is off by no more than γ_(n-1) of the sum of
// their magnitudes (Higham, "Accuracy and Stability of Numerical Algorithms",
// section 4.2); scaling and adding the sums of q blocks takes q+1 roundings more,
// bias and old C one each. A matrix instruction is off, at every step, by no more
// than (L+1)·2^-F + 2^-Keep of the sum of magnitudes, in which a subnormal code
// counts as the least normal number, since it is aligned as one.
//
// Terms that apply only sometimes are counted only then: underflow of a product
// with a scale where one could be subnormal, the rounding to T where T is not
// float32, the rounding of the exact result always. Where something could
// overflow, in an order that is allowed, the bound is +Inf; where the exact result
// is not finite it is 0. All bounds are rounded up.
//
// Errors, panics and the end of ctx are those of [Predict].
func Bound[T gemm.Output](ctx context.Context, bound []float64, old []T, a, b *tensor.Tensor, acc Accumulation, o Options) error {
	p, err := newProduct(a, b)
	if err == nil {
		err = acc.check(&p)
	}
	if err == nil {
		err = p.checkOptions(len(bound), &o)
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	if o.Accumulate && len(old) != len(bound) {
		panic(wrongOld)
	}
	d := newDerivation(&p, acc, o, layoutOf[T]())
	split := wide(a.Format) && wide(b.Format)
	err = p.tiles(ctx, "bound", &o, func(t *tile) error {
		s := boundPool.Get().(*boundStrips)
		defer boundPool.Put(s)
		s.a.decode(a, t.i0, t.i1, split)
		s.b.decode(b, t.j0, t.j1, false)
		s.x = decodeMagnitudes(s.x[:0], a, t.i0, t.i1, acc.modeled())
		s.y = decodeMagnitudes(s.y[:0], b, t.j0, t.j1, acc.modeled())
		for i := t.i0; i < t.i1; i++ {
			for j := t.j0; j < t.j1; j++ {
				at := i*p.n + j
				var sum accumulator
				p.sum(&sum, &s.a, &s.b, i, j, t.i0, t.j0)
				e := operandRows{x: s.x[(i-t.i0)*p.k : (i-t.i0+1)*p.k], y: s.y[(j-t.j0)*p.k : (j-t.j0+1)*p.k], i: i, j: j}
				e.special = s.a.special[i-t.i0] || s.b.special[j-t.j0]
				if o.Bias != nil {
					e.addends[0] = o.Bias[j]
				}
				if o.Accumulate {
					e.addends[1] = widen(old[at])
				}
				bound[at] = d.element(&sum, e)
				if err := t.done(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

const wrongOld = "oracle: the old C is not of M*N elements"

func (acc *Accumulation) modeled() bool { return acc.Kernel.Model != Model{} }

// check reports whether the kernel, if there is one, can multiply the operands.
func (acc *Accumulation) check(p *product) error {
	if err := checkScaleOrder(acc.Scales); err != nil {
		return err
	}
	if !acc.modeled() {
		return nil
	}
	return acc.Kernel.check(p)
}

// boundStrips is what a worker decodes: integers for the exact result, and
// magnitudes.
type boundStrips struct {
	a, b integers
	x, y []float64
}

var boundPool = sync.Pool{New: func() any { return new(boundStrips) }}

// decodeMagnitudes appends the magnitudes of rows [lo, hi); a subnormal is the
// least normal number where aligned says so.
func decodeMagnitudes(dst []float64, t *tensor.Tensor, lo, hi int, aligned bool) []float64 {
	table := magnitudes(t.Format, aligned)
	for i := lo; i < hi; i++ {
		for _, c := range t.Row(i) {
			dst = append(dst, table[c])
		}
	}
	return dst
}

func magnitudes(f fp8.Format, aligned bool) (table [256]float64) {
	for c := range table {
		v := math.Abs(float64(f.Float32(byte(c))))
		if v != v || math.IsInf(v, 0) {
			v = 0
		}
		if aligned && v != 0 {
			v = max(v, float64(f.MinNormal()))
		}
		table[c] = v
	}
	return table
}

// derivation is what a bound's terms have in common.
type derivation struct {
	p        *product
	acc      Accumulation
	order    ScaleOrder
	out      layout
	u        float64
	least    float64 // the largest error of a product that underflows
	quantum  float64 // the least magnitude of a sum of products that is not 0
	maxA     float64 // the largest finite codes
	maxB     float64
	epilogue int // additions after the product
}

func newDerivation(p *product, acc Accumulation, o Options, out layout) derivation {
	d := derivation{p: p, acc: acc, order: acc.Scales, out: out, u: 0x1p-24, least: 0x1p-150}
	if acc.Truncated {
		d.u, d.least = 0x1p-23, 0x1p-149
	}
	if acc.modeled() && acc.Kernel.Scales != AnyOrder {
		d.order = acc.Kernel.Scales
	}
	d.maxA, d.maxB = float64(p.a.Format.Max()), float64(p.b.Format.Max())
	d.quantum = power2(unit(p.a.Format) + unit(p.b.Format))
	if o.Bias != nil {
		d.epilogue++
	}
	if o.Accumulate {
		d.epilogue++
	}
	return d
}

// operandRows are an element's rows, as magnitudes, and what is added at the end.
type operandRows struct {
	x, y    []float64
	i, j    int
	special bool // has a code that is not finite
	addends [2]float32
}

// element bounds an element whose product, without addends, is sum.
func (d *derivation) element(sum *accumulator, e operandRows) float64 {
	class := finite
	var total, err float64 // magnitudes, and errors before the last additions
	blocks := d.p.blocks()
	for q := range blocks {
		lo, hi := d.p.span(q)
		sa, sb := float64(d.p.scalesA.at(e.i, lo)), float64(d.p.scalesB.at(e.j, lo))
		t := dotMagnitudes(e.x[lo:hi], e.y[lo:hi])
		scaled := float64(float64(sa*sb) * t)
		total += scaled
		err += float64(float64(sa*sb)*d.inside(t, hi-lo)) + d.underflow(t, sa, sb, hi-lo)
		if d.breaks(t, sa, sb, e.special) {
			return math.Inf(1)
		}
	}
	operations := 4*len(e.x) + 64
	if raise(total+err, operations) >= layout32.overflow() {
		return math.Inf(1)
	}
	for _, x := range e.addends {
		class = class.plus(sum.addAny(x))
		total += math.Abs(float64(x))
	}
	if class != finite || e.special {
		return 0
	}
	err = float64(err*(1+d.after(blocks))) + float64(total*d.after(blocks))
	if raise(total+err, operations) >= layout32.overflow() {
		return math.Inf(1)
	}
	exact := math.Abs(sum.float64())
	reach := raise(exact+err, operations)
	if d.out != layout32 {
		err += d.out.rounding(reach)
	}
	return raise(err+d.out.rounding(exact), operations)
}

// after is the relative error of scaling and adding the sums of blocks, and of
// the last additions.
func (d *derivation) after(blocks int) float64 {
	switch {
	case d.chained(), d.acc.Dequantized:
		return gamma(d.epilogue, d.u)
	}
	return gamma(blocks+1+d.epilogue, d.u)
}

// inside bounds the error of the sum of n products of magnitude t in all.
func (d *derivation) inside(t float64, n int) float64 {
	if d.acc.modeled() {
		return float64(t * d.acc.Kernel.coefficient(d.p, n, d.u))
	}
	if d.acc.Dequantized {
		return float64(t * gamma(d.p.k+2, d.u))
	}
	return float64(t * gamma(n-1, d.u))
}

// coefficient is the relative error of a sum of n products by instructions.
func (k *Kernel) coefficient(p *product, n int, u float64) float64 {
	if k.Model.Unit == Scaled {
		n = p.k // the chain does not end with the block
	}
	length := n
	if k.Promote > 0 {
		length = min(n, k.Promote)
	}
	m := &k.Model
	instructions := (length + m.K - 1) / m.K
	steps := instructions * ((m.K + m.L - 1) / m.L)
	theta := float64(m.L+1)*power2(-m.F) + power2(-m.Keep)
	growth := 0.0
	switch m.Unit {
	case Emulated:
		theta += 0x1p-24 // the last addition, counted with every step
		growth = gamma(steps, theta)
	case MatrixCore:
		theta = float64(m.L+6)*power2(-m.F) + 0x1p-24
		growth = gamma(steps, theta)
	}
	inside := float64(float64(float64(steps)*theta) * (1 + growth))
	parts := (n + length - 1) / max(length, 1)
	return float64(inside*(1+gamma(parts, u))) + gamma(parts-1, u)
}

// vanishing is where the last place of a product of two float32 may be subnormal:
// 48 bits above the least normal number, and some more.
const vanishing = 0x1p-76

// underflow bounds what a scaled block of n products loses to the end of float32's
// range.
func (d *derivation) underflow(t, sa, sb float64, n int) float64 {
	m := &d.acc.Kernel.Model
	ab := float64(sa * sb)
	switch {
	case t == 0 || ab == 0:
		return 0
	case d.chained():
		// c counts with exponent -126 even if it is 0, and results end at 2^-149.
		steps := (n+m.K-1)/m.K*((m.K+m.L-1)/m.L) + 1
		return float64(float64(steps) * (float64(m.L+1)*power2(-126-m.F) + 0x1p-149))
	case min(sa, sb, ab)*d.quantum >= vanishing:
		return 0
	case d.acc.Dequantized:
		return float64(float64(4*n) * d.least * (1 + float64(d.maxA*sa) + float64(d.maxB*sb)))
	}
	return float64(4 * d.least * (1 + max(t, sa, sb)))
}

// chained says that scales are inside the instructions.
func (d *derivation) chained() bool { return d.acc.modeled() && d.acc.Kernel.Model.Unit == Scaled }

// breaks reports whether an intermediate result of a block may be infinite, or 0
// times an infinity, where the exact one is not.
func (d *derivation) breaks(t, sa, sb float64, special bool) bool {
	if d.chained() {
		return false
	}
	limit := layout32.overflow() / 2
	pa, pb, ab := t*sa >= limit, t*sb >= limit, sa*sb >= limit
	if d.acc.Dequantized {
		lost := min(sa, sb)*d.quantum < vanishing && sa*sb != 0
		return d.maxA*sa >= limit || d.maxB*sb >= limit || special && lost
	}
	ab = ab || special && sa*sb < vanishing && sa*sb != 0
	switch d.order {
	case ProductThenFMA:
		return ab
	case AThenB:
		return pa
	case BThenA:
		return pb
	}
	return pa || pb || ab
}

func dotMagnitudes(x, y []float64) float64 {
	y = y[:len(x)]
	var s0, s1, s2, s3 float64
	for len(x) >= 4 && len(y) >= 4 {
		s0 += float64(x[0] * y[0])
		s1 += float64(x[1] * y[1])
		s2 += float64(x[2] * y[2])
		s3 += float64(x[3] * y[3])
		x, y = x[4:], y[4:]
	}
	for i, v := range x {
		s0 += float64(v * y[i])
	}
	return s0 + s1 + s2 + s3
}
