package oracle

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/dots"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Accumulation is what is known of how a kernel adds. The zero value is float32
// rounded to nearest, in an unknown order: within a block of K that has one pair
// of scales products are added in any order, with or without fused
// multiply-adds; the block's sum is scaled in any order of the scales; the
// scaled sums are added in any order. Outer scales are applied to the whole sum, to
// those of blocks or to scales, one after the other or as their product; a divisor may be
// multiplied by as its reciprocal. Package gemm, pairwise and split sums are such.
type Accumulation struct {
	// Truncated says that additions and multiplications round toward zero.
	Truncated bool `json:"truncated,omitempty"`
	// Dequantized says that codes are multiplied by their scales and outer scales, in
	// float32, before products are formed and added, in any order.
	Dequantized bool `json:"dequantized,omitempty"`
	// Scales, where known, avoids bounds of +Inf for scales so extreme that only
	// another order would overflow. Outer scales are then applied to the whole sum, as
	// their product.
	Scales ScaleOrder `json:"scales"`
	// Kernel, unless its Model is the zero Model, says that matrix instructions add
	// the products of a block, in steps of the model's L, whichever products are in a
	// step and in whatever order steps come. Its own Scales, if known, are used in
	// place of those above.
	Kernel Kernel `json:"kernel,omitzero"`
	// Finite says that the result is finite. So the kernel did not apply scales in an order
	// that overflows, which would end in an infinity or a NaN, and such an order makes no
	// bound +Inf unless all that are allowed overflow.
	Finite bool `json:"finite,omitempty"`
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
// counts as the least normal number, since it is aligned as one. That of a SingleRounding
// model is off by 2^-24, and twice that if c is added last. That of a Grouped model
// is off by (G+1)·2^-F of the largest product of its scales' powers of two besides, G
// being the groups of a step, since groups are aligned by these. Each outer scale is one
// rounding more, and two if it is a divisor.
//
// Terms that apply only sometimes are counted only then: underflow of a product
// with a scale where one could be subnormal, the rounding to T where T is not
// float32, the rounding of the exact result always. Where something could
// overflow, in an order that is allowed, the bound is +Inf, but see [Accumulation].Finite;
// where the exact result is not finite it is 0. All bounds are rounded up.
//
// Errors and the end of ctx are those of [Predict].
func Bound[T gemm.Output](ctx context.Context, bound []float64, old []T, a, b *tensor.Tensor, acc Accumulation, o Options) error {
	p, err := newProduct(a, b)
	if err == nil {
		err = acc.check(&p)
	}
	if err == nil {
		err = p.checkOptions(len(bound), &o)
	}
	if err == nil {
		d := newDerivation(&p, acc, o, layoutOf[T]())
		tables := [2][256]float64{magnitudes(a.Format, acc.modeled()), magnitudes(b.Format, acc.modeled())}
		err = bounds(ctx, bound, old, p.grid, &o, func(t *tile) (func(i, j int, e ending) float64, func()) {
			s := p.strips(t, &tables)
			s.tame = d.tame(s)
			return func(i, j int, e ending) float64 {
				bound, _, _ := d.element(s, i, j, e)
				return bound
			}, func() { stripsPool.Put(s) }
		})
	}
	if err != nil {
		return fmt.Errorf("oracle: %w", err)
	}
	return nil
}

// bounds writes the bounds of elements. bounder returns what bounds those of a tile, and what
// gives it back.
func bounds[T gemm.Output](ctx context.Context, bound []float64, old []T, g grid, o *Options, bounder func(t *tile) (func(i, j int, e ending) float64, func())) error {
	if o.Accumulate && len(old) != len(bound) {
		return sentinel.Length(gemm.ErrOperands, "the old C", len(old), len(bound))
	}
	return g.elements(ctx, "bound", o, nil, func(t *tile) (func(x place), func()) {
		of, end := bounder(t)
		return func(x place) {
			bound[x.to] = of(x.i, x.j, newEnding(old, x.to, x.j, o))
		}, end
	})
}

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

// magnitudes has the magnitude of each code; a subnormal is the least normal number
// where aligned says so.
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

// largestMagnitude is that of a finite code of f.
func largestMagnitude(f fp8.Format) float64 {
	table := magnitudes(f, false)
	return slices.Max(table[:])
}

// derivation is what a bound's terms have in common.
type derivation struct {
	p        *product
	acc      Accumulation
	orders   orderSet // that are allowed
	out      layout
	u        float64
	least    float64 // the largest error of a product that underflows
	quantum  float64 // the least magnitude of a sum of products that is not 0
	maxA     float64 // the largest finite codes
	maxB     float64
	epilogue int // additions after the product
	modeled  bool
	whole    float64 // relative errors of the sum of a block, and of the last one
	last     float64
	final    float64 // and of what is done with the sums
	outers   int     // roundings of outer scales
}

func newDerivation(p *product, acc Accumulation, o Options, out layout) derivation {
	d := derivation{p: p, acc: acc, orders: ordersOf(acc.Scales), out: out, u: 0x1p-24, least: 0x1p-150}
	if acc.Truncated {
		d.u, d.least = 0x1p-23, 0x1p-149
	}
	if acc.modeled() && acc.Kernel.Scales != AnyOrder {
		d.orders = ordersOf(acc.Kernel.Scales)
	}
	d.maxA, d.maxB = largestMagnitude(p.a.Format), largestMagnitude(p.b.Format)
	d.outers = p.outers.roundings()
	d.quantum = power2(unit(p.a.Format) + unit(p.b.Format))
	if o.Bias != nil {
		d.epilogue++
	}
	if o.Accumulate {
		d.epilogue++
	}
	d.modeled = acc.modeled()
	if blocks := p.blocks(); blocks > 0 {
		d.whole = d.inside(p.block)
		lo, hi := p.span(blocks - 1)
		d.last = d.inside(hi - lo)
		d.final = d.after(blocks)
	}
	return d
}

// tame reports whether no block of a tile may overflow or underflow, whatever its codes, in
// an order that is allowed.
func (d *derivation) tame(s *strips) bool {
	if !s.kept || !d.p.outers.none || d.chained() || d.acc.Dequantized {
		return false
	}
	least, most := 0x1p200, 0.0
	take := func(x float64) {
		if most = max(most, x); x != 0 {
			least = min(least, x)
		}
	}
	for _, x := range s.scalesA[:(s.tile.i1-s.tile.i0)*s.blocks] {
		take(x)
	}
	for q := range s.blocks {
		for _, x := range s.scalesB[q*dots.Columns:][:s.tile.j1-s.tile.j0] {
			take(x)
		}
	}
	t := float64(float64(d.p.block)*d.maxA) * d.maxB
	return most*max(t, most) < layout32.overflow()/2 && min(least, least*least)*d.quantum >= vanishing
}

// addBlocks adds up the blocks of an element of a tame tile, whose sums are exact:
// magnitudes, errors, and what they are of. Of that sum the errors are added without theirs,
// which takes less than twofold does (Ogita, Rump and Oishi, "Accurate sum and dot product",
// 2005).
func (d *derivation) addBlocks(s *strips, i, j int) (total, err float64, sum twofold) {
	at, n := i*s.blocks, s.blocks*dots.Columns
	sums, absolute, others := s.sums[at*dots.Columns:][:n], s.absolute[at*dots.Columns:][:n], s.scalesB[:n]
	inside, small := d.whole, 0.0
	for q, sa := range s.scalesA[at : at+s.blocks] {
		if q == s.blocks-1 {
			inside = d.last
		}
		ab, t, x := float64(sa*others[j]), absolute[j], sums[j]
		total += float64(ab * t)
		err += float64(ab * float64(t*inside))
		p := float64(ab * x)
		rest, lost := math.FMA(ab, x, -p), 0.0
		sum.hi, lost = number.TwoSum(sum.hi, p)
		sum.lo += lost + rest
		small += math.Abs(lost) + math.Abs(rest)
		j += dots.Columns
	}
	// As many roundings, of sums of no more than small.
	sum.lost = float64(small * float64(float64(2*s.blocks+8)*0x1p-52))
	return total, err, sum
}

// element bounds element (i, j). It returns its sum, too, without e, and whether that is to
// be trusted.
func (d *derivation) element(s *strips, i, j int, e ending) (bound float64, sum twofold, sure bool) {
	var total, err float64 // magnitudes, and errors before the last additions
	outer := outerBound{d: d}
	outer.begin(i, j)
	special := s.special(i, j)
	row, column := i-s.tile.i0, j-s.tile.j0
	if sure = s.tame && !special && s.exact(row, column); sure {
		total, err, sum = d.addBlocks(s, row, column)
	} else {
		var broken orderSet
		for q := range s.blocks {
			sa, sb := s.scalesA[row*s.blocks+q], s.scalesB[q*dots.Columns+column]
			t := s.magnitude(row, column, q)
			lo, hi := d.p.span(q)
			scaled := float64(float64(sa*sb) * t)
			total += scaled
			inside := d.whole
			if q == s.blocks-1 {
				inside = d.last
			}
			err += float64(float64(sa*sb)*float64(t*inside)) + d.underflow(t, sa, sb, hi-lo)
			broken |= d.breaks(t, sa, sb, special)
			if d.overflows(broken) || outer.block(t, sa, sb, hi-lo, special) {
				return math.Inf(1), sum, false
			}
		}
	}
	if d.grouped() {
		err += d.p.groupErrors(&d.acc.Kernel, i, j)
	}
	operations := 4*d.p.k + 64
	if raise(total+err, operations) >= layout32.overflow() {
		return math.Inf(1), sum, false
	}
	total, err = outer.end(total, err)
	total += math.Abs(float64(e.bias))
	total += math.Abs(float64(e.old))
	if e.class() != finite || special {
		return 0, sum, false
	}
	err = float64(err*(1+d.final)) + float64(total*d.final)
	if raise(total+err, operations) >= layout32.overflow() {
		return math.Inf(1), sum, false
	}
	if !sure {
		sum, sure = s.sum(i, j)
	}
	exact := math.Abs(s.exactFloat64(i, j, e, sum, sure))
	reach := raise(exact+err, operations)
	if d.out != layout32 {
		err += d.out.rounding(reach)
	}
	return raise(err+d.out.rounding(exact), operations), sum, sure
}

// exactFloat64 returns element (i, j), which is finite, rounded to nearest; sum is its, if it
// is sure.
func (s *strips) exactFloat64(i, j int, e ending, sum twofold, sure bool) float64 {
	if sure {
		sum.addEnding(e)
		if x, sure := sum.float64(); sure {
			return x
		}
	}
	return math.Float64frombits(layout64.nearest(s.total(i, j, e)))
}

// after is the relative error of scaling and adding the sums of blocks, and of
// the last additions.
func (d *derivation) after(blocks int) float64 {
	switch {
	case d.chained():
		return gamma(d.outers+d.epilogue, d.u)
	case d.acc.Dequantized:
		return gamma(d.epilogue, d.u)
	}
	return gamma(blocks+1+d.outers+d.epilogue, d.u)
}

// inside is the relative error of the sum of n products.
func (d *derivation) inside(n int) float64 {
	if d.modeled {
		return d.acc.Kernel.coefficient(d.p, n, d.u)
	}
	if d.acc.Dequantized {
		return gamma(d.p.k+2+d.outers, d.u)
	}
	return gamma(n-1, d.u)
}

// coefficient is the relative error of a sum of n products by instructions.
func (k *Kernel) coefficient(p *product, n int, u float64) float64 {
	if k.Model.ScalesInside() {
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
	case Grouped:
		theta = m.groupUnit() + power2(-m.Keep)
	case SingleRounding:
		theta = 0x1p-24
		if m.Last {
			theta *= 2
		}
		growth = gamma(steps, theta)
	case Emulated:
		theta += 0x1p-24 // the last addition, counted with every step
		growth = gamma(steps, theta)
	case matrixCore:
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
		steps := (n+m.K-1)/m.K*((m.K+m.L-1)/m.L) + 1
		return float64(float64(steps) * m.stepUnderflow())
	case min(sa, sb, ab)*d.quantum >= vanishing:
		return 0
	case d.acc.Dequantized:
		return float64(float64(4*n) * d.least * (1 + float64(d.maxA*sa) + float64(d.maxB*sb)))
	}
	return float64(4 * d.least * (1 + max(t, sa, sb)))
}

// stepUnderflow is what a step loses at the end of float32's range: c counts with exponent
// -126 even if it is 0, and a subnormal result has no more places than the least normal one.
func (m *Model) stepUnderflow() float64 {
	switch {
	case m.Flush: // the sum, and with c
		return 2 * 0x1p-126
	case m.Unit == SingleRounding:
		return 2 * 0x1p-150
	}
	return float64(float64(m.L+1)*power2(-126-m.F)) + power2(-126-m.Keep)
}

// chained says that scales are inside the instructions.
func (d *derivation) chained() bool { return d.modeled && d.acc.Kernel.Model.ScalesInside() }

// grouped says that groups of products are aligned by their scales.
func (d *derivation) grouped() bool { return d.modeled && d.acc.Kernel.Model.Unit == Grouped }

// orderSet is a set of orders of scales.
type orderSet uint8

const everyOrder orderSet = 1<<ProductThenFMA | 1<<AThenB | 1<<BThenA

func ordersOf(s ScaleOrder) orderSet {
	if s == AnyOrder {
		return everyOrder
	}
	return 1 << s
}

// overflows reports whether the kernel may have used an order of scales that breaks.
func (d *derivation) overflows(broken orderSet) bool {
	if d.acc.Finite {
		return broken&d.orders == d.orders
	}
	return broken&d.orders != 0
}

// breaks returns the orders in which an intermediate result of a block may be infinite, or 0
// times an infinity, where the exact one is not.
func (d *derivation) breaks(t, sa, sb float64, special bool) (orders orderSet) {
	if d.chained() {
		return 0
	}
	limit := layout32.overflow() / 2
	if d.acc.Dequantized {
		lost := min(sa, sb)*d.quantum < vanishing && sa*sb != 0
		if d.maxA*sa >= limit || d.maxB*sb >= limit || special && lost {
			return everyOrder
		}
		return 0
	}
	if t*sa >= limit {
		orders |= 1 << AThenB
	}
	if t*sb >= limit {
		orders |= 1 << BThenA
	}
	if sa*sb >= limit || special && sa*sb < vanishing && sa*sb != 0 {
		orders |= 1 << ProductThenFMA
	}
	return orders
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
