package flash

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
)

// Numerics is what is known of a flash kernel, as far as bounds of its error depend on it:
// that of a [Kernel] is [Kernel.Numerics]. The zero Numerics is P in float32, sums rounded once,
// tiles of 16 keys or more, exponentials of two units in the last place.
type Numerics struct {
	// P is the format that weights are cast to before they multiply V. Offset and PScale
	// lift them before that: weights are at most 2^Offset·PScale.
	P      Cast    `json:"p"`
	Offset float64 `json:"offset,omitempty"` // log2
	PScale float64 `json:"pScale,omitempty"` // 0 is 1
	// Threshold, log2, is how far the maximum may grow before sums are rescaled.
	Threshold float64 `json:"threshold,omitempty"`

	Tile   int `json:"tile,omitempty"`   // keys; 0: any number from 16 on
	Splits int `json:"splits,omitempty"` // parts of the keys that are merged; 0 is 1

	Scores Product `json:"scores,omitzero"` // of Q·Kᵀ; Contract is float32 in any order
	Values Product `json:"values,omitzero"` // of P·V, in a tile

	// Exp2 is the relative error of an exponential of a weight; 0 is 2^-22, two units in the
	// last place, as ex2.approx of NVIDIA's PTX has. Alpha's is that at most.
	Exp2 float64 `json:"exp2,omitempty"`

	Out   Cast `json:"out,omitempty"`   // format of the output; LSE is float32 always
	Base2 bool `json:"base2,omitempty"` // LSE is in base 2
}

// Numerics returns what bounds depend on. That of a kernel that [Kernel.Check] refuses is one
// that [Numerics.Check] refuses, where they depend on what is wrong.
func (k Kernel) Numerics() Numerics {
	return Numerics{
		P: k.P, Offset: float64(k.Offset), PScale: float64(k.pScale()), Threshold: float64(k.Threshold),
		Tile: k.Tile, Splits: k.Splits, Scores: k.Scores.Product, Values: k.Values,
		Exp2: k.Exp2.relative(), Out: k.Out, Base2: k.Base2,
	}
}

// relative bounds the relative error of an exponential of a weight: the roundings of
// float32, and the polynomials' own errors. It is NaN of a degree that there is not.
func (e Exponential) relative() float64 {
	limit, ok := map[int]float64{0: 0x1p-23, 3: 9e-5, 4: 4.5e-6, 5: 5e-7}[e.Degree]
	if !ok {
		return math.NaN()
	}
	return limit
}

// mostParts is more than the keys of any kernel's tile and more splits than any makes.
const mostParts = 1 << 16

// Check returns an [ErrKernel] unless the fields are in range and go together.
func (c Numerics) Check() error {
	if err := c.checkEnums(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("flash: claim: %w", err)
	}
	return nil
}

func (c Numerics) check() error {
	bad := func(format string, args ...any) error {
		return sentinel.Errorf(ErrKernel, format, args...)
	}
	switch {
	case c.Tile < 0 || c.Tile > mostParts:
		return bad("tile %d must be from 0 to %d keys", c.Tile, mostParts)
	case c.Splits < 0 || c.Splits > mostParts:
		return bad("splits %d must be from 0 to %d", c.Splits, mostParts)
	case !notNegative(c.Threshold):
		return bad("threshold %v must be a number that is not negative", c.Threshold)
	case !(math.Abs(c.Offset) <= 128):
		return bad("offset %v must be within 128", c.Offset)
	case !notNegative(c.PScale):
		return bad("pScale %v must be a number that is not negative", c.PScale)
	case !(c.Exp2 >= 0 && c.Exp2 < 1):
		return bad("the error %v of an exponential must be from 0 to below 1", c.Exp2)
	case c.Out > Float16:
		return bad("the output is in %v: want float32, bf16 or fp16", c.Out)
	case c.Scores.Carry:
		return bad("only P·V can be carried on")
	}
	for _, p := range []Product{c.Scores, c.Values} {
		if err := p.check(); err != nil {
			return err
		}
	}
	return nil
}

func notNegative(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// Limits are bounds of errors, of the rows that were asked for.
type Limits struct {
	Out []float64 // [rows, ValueDim]
	LSE []float64 // [rows]
}

// Bound returns how far the results of a correct kernel may be from exact attention, a
// priori: from the operands and what is claimed of the kernel. A kernel beyond it is wrong.
//
// In natural units, with t_j the exact score of key j, w_j its weight, o_d the exact output
// and u = 2^-24 the unit roundoff of float32, for each query:
//
//   - Score j is off by E_j, the error of a sum of D products relative to that of their
//     magnitudes ([oracle.Kernel.RelativeError], or γ_(D-1)), and the roundings of scales,
//     of the score itself, of its difference to the running maximum, of the offset, and of
//     the exponents of the rescales that follow: no more than
//     δ_j = E_j + u·(6|t_j| + 2·max|t| + 3·(max t - t_j) + ln2·(3·offset + 2·tau)) + e + R·a
//     to first order, with e and a the errors of the exponentials of weights and of the
//     R = tiles-1 rescales. Such errors move weights in O and in l alike, so that the
//     output moves by Σ w_j·δ_j·|v_jd - o_d|, to first order; the factor 1/(1-Σ w·δ) is the
//     rest, and a constant V does not see them.
//   - P's cast moves O alone: by 2^-4/(1+2^-4) of a normal weight in E4M3, and by 2^-10
//     below, relative to the largest weight times 2^offset·PScale, but never by more than the
//     weight. Where offset + tau exceed the format, 1 - max/2^(offset+tau) of a weight may
//     be lost to saturation.
//   - The sum of P·V is off by the coefficient of its sums relative to Σ P·|v|, over a tile
//     or, where it is chained, over all keys, and two roundings a tile. Values that carry
//     scales of blocks along rows, or outer ones, are rounded twice before that.
//   - l: γ of a tile and two roundings a tile; the reciprocal, products with it and with
//     scales, the sink: eight roundings, relative to the output.
//   - Splits: exponents of the merge are off by the roundings of log-sum-exps, in natural
//     units u·(4·max(|t_j|, |lse|) + 8|lse| + offset + 16), and 4a; these do not cancel.
//     Two roundings more for each split.
//   - The type of the output.
//
// γ_n = nu/(1-nu) is that of Higham, "Accuracy and Stability of Numerical Algorithms",
// section 3.1; the sums are his section 4.2. LSE is off by Σ w·δ, without the sink, γ of l,
// and six roundings of max|t|, lse, log l and the offset.
//
// A bound is 0 where the exact result is not finite or no key is seen, and +Inf where
// nothing can be said. It is rounded up. Errors are those of [Exact] and of [Numerics.Check].
func Bound(ctx context.Context, p *attention.Problem, c Numerics, o Options) (*Limits, error) {
	if err := checkProblem(p); err != nil {
		return nil, err
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	s := p.Sizes()
	rows, err := o.rows(s)
	if err != nil {
		return nil, err
	}
	l := &Limits{Out: make([]float64, len(rows)*s.ValueDim), LSE: make([]float64, len(rows))}
	d := newDerivation(c, s)
	heads := newHeads(p, c.Scores.modeled(), c.Values.modeled())
	d.scale(&heads.v)
	count := meter.New(ctx, o.Progress, "bound", int64(len(rows)))
	err = byHead(rows, s, func(kv, from, to int) error {
		head := heads.head(kv)
		state := func() *rowBound { return newRowBound(d, heads, head) }
		return each(ctx, from, to, o.Workers, count, state, func(r *rowBound, at int) {
			out := l.Out[at*s.ValueDim : (at+1)*s.ValueDim]
			l.LSE[at] = r.bound(out, rows[at]/s.Queries, rows[at]%s.Queries)
		})
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// derivation is what the bounds of all rows have in common.
type derivation struct {
	Numerics
	unit, least float64 // errors of a cast: relative, and absolute in units of the top weight
	lost        float64 // the share of a weight that saturation may take
	exp, alpha  float64 // relative errors of exponentials
	scores      float64 // relative errors of sums: of a score,
	values      float64 // of P·V over the tiles,
	sum         float64 // of l
	last        float64 // of what follows
	rescales    int
	underflow   float64 // what sums and products lose at the end of float32's range
	leastNormal float64 // of P, where subnormal codes are aligned as if normal
}

const roundoff = 0x1p-24

// gamma is γ_n of Higham, section 3.1.
func gamma(n int) float64 {
	nu := float64(n) * roundoff
	if nu >= 1 {
		return math.Inf(1)
	}
	return nu / (1 - nu)
}

func newDerivation(c Numerics, s attention.Sizes) *derivation {
	d := &derivation{Numerics: c, exp: c.Exp2, least: 0x1p-125} // weights below are flushed
	if d.exp == 0 {
		d.exp = 0x1p-22
	}
	d.alpha = min(d.exp, 0x1p-22)
	if d.PScale == 0 {
		d.PScale = 1
	}
	d.Splits = max(d.Splits, 1)
	// Of any tile the smallest has the most rescales, and the largest the longest sums.
	least, most := d.Tile, d.Tile
	if d.Tile == 0 {
		least, most = 16, s.Keys
	}
	lift := math.Exp2(d.Offset) * d.PScale
	switch c.P {
	case BFloat16:
		d.unit = 0x1p-8 / (1 + 0x1p-8)
	case Float16:
		d.unit, d.least = 0x1p-11/(1+0x1p-11), max(0x1p-25/lift, d.least)
	case E4M3:
		d.casts(fp8.E4M3, lift)
	case E5M2:
		d.casts(fp8.E5M2, lift)
	}
	tiles := (s.Keys+least-1)/least + d.Splits - 1
	d.rescales = max(tiles-1, 0)
	d.underflow = 0x1p-149 * float64(3*d.rescales+16)
	d.scores = c.Scores.relative(s.Dim)
	most = min(most, s.Keys)
	d.sum = gamma(most + 2*tiles)
	d.last = gamma(8)
	if d.Splits > 1 {
		d.last = gamma(12 + 2*d.Splits)
	}
	if c.Values.Carry {
		// The last tile of a split may be filled up.
		d.values = c.Values.relative(s.Keys+most*d.Splits) + gamma(2*tiles)
	} else {
		d.values = c.Values.relative(most) + gamma(2*tiles)
	}
	return d
}

// scale takes the errors of values that carry their scales: two roundings of float32, since
// some multiply the scales first.
func (d *derivation) scale(v *operand) {
	if v.scattered() {
		d.values += gamma(2)
	}
}

// casts takes the errors of a cast to f.
func (d *derivation) casts(f fp8.Format, lift float64) {
	half := math.Ldexp(1, -f.Mantissa()-1)
	d.unit = half / (1 + half)
	d.least = max(float64(f.MinSubnormal())/2/lift, d.least)
	if d.Values.modeled() {
		d.leastNormal = float64(f.MinNormal()) / lift
	}
	// What is rounded to the largest number is not lost.
	if top := lift * math.Exp2(d.Threshold); top > float64(f.Max())*(1+half) {
		d.lost = 1 - float64(f.Max())/top
	}
}

func (p Product) modeled() bool { return p.Order == Instruction }

// relative is the error of a sum of n products.
func (p Product) relative(n int) float64 {
	if p.Order == ExactOnce {
		return roundoff
	}
	k := oracle.Kernel{Model: p.Model, Promote: p.Promote}
	return k.RelativeError(n)
}

// rowBound bounds the results of a row, and keeps its memory for the next.
type rowBound struct {
	*derivation
	heads          *heads
	head           *keysValues
	q, magnitude   []float64
	t, e, w, delta []float64 // of each kept key
	out, total     []float64 // exact outputs, sums of magnitudes
	cons, cast     []float64 // errors of weights, and of their cast
	merge          []float64 // and of what they are merged with
}

func newRowBound(d *derivation, heads *heads, head *keysValues) *rowBound {
	r := &rowBound{derivation: d, heads: heads, head: head}
	for _, x := range []*[]float64{&r.q, &r.magnitude} {
		*x = make([]float64, heads.s.Dim)
	}
	for _, x := range []*[]float64{&r.t, &r.e, &r.w, &r.delta} {
		*x = make([]float64, heads.s.Keys)
	}
	for _, x := range []*[]float64{&r.out, &r.total, &r.cons, &r.cast, &r.merge} {
		*x = make([]float64, heads.s.ValueDim)
	}
	return r
}

// bound fills out with the bounds of row i of query head h, and returns that of its LSE.
func (r *rowBound) bound(out []float64, h, i int) float64 {
	p := r.heads.p
	clear(out)
	lo, hi := p.Mask.Range(i, r.heads.s.Queries, r.heads.s.Keys)
	if lo == hi {
		return 0
	}
	n := hi - lo
	r.score(h, i, lo, hi)
	t, w, delta := r.t[:n], r.w[:n], r.delta[:n]
	top, reach := math.Inf(-1), 0.0
	for _, x := range t {
		top, reach = max(top, x), max(reach, math.Abs(x))
	}
	if math.IsNaN(top) || math.IsInf(top, 0) {
		return 0
	}
	keys := 0.0
	for j, x := range t {
		w[j] = math.Exp(x - top)
		keys += w[j]
	}
	lse := top + math.Log(keys)
	all, sink := keys, 0.0
	if p.Sinks != nil {
		sink = math.Exp(float64(p.Sinks[h]) - top)
		all += sink
	}
	if math.IsInf(all, 1) { // the sink has all the weight
		sink, all = 1, 1
		clear(w)
	} else {
		for j := range w {
			w[j] /= all
		}
		sink /= all
	}
	moved := 0.0 // of the keys' weights
	for j, x := range t {
		exponent := roundoff * (6*math.Abs(x) + 2*reach + 3*(top-x) + math.Ln2*(3*r.Offset+2*r.Threshold))
		delta[j] = math.Expm1(r.e[j] + exponent + float64(r.rescales)*r.alpha + r.exp)
		moved += w[j] * delta[j]
	}
	share := keys / all
	inner := 0.0
	if share > 0 {
		inner = moved / share
	}
	if sink > 0 {
		x := float64(p.Sinks[h])
		at := math.Expm1(roundoff*(6*math.Abs(x)+3*reach+3*math.Abs(x-top)+r.Offset) + r.alpha + r.exp)
		delta = append(delta, at)
		moved += sink * at
	}
	if !(moved < 0.5 && inner < 0.5) { // NaN, too
		for c := range out {
			out[c] = math.Inf(1)
		}
		return math.Inf(1)
	}
	r.sums(w, delta, sink, lse, lo)
	r.finish(out, moved)
	limit := inner/(1-inner) + r.sum +
		gamma(6)*(reach+math.Abs(lse)+math.Log(float64(n))+r.Offset+1) + r.alpha
	if r.Splits > 1 {
		limit += roundoff*(12*max(reach, math.Abs(lse))+16+r.Offset+float64(2*r.Splits)) + 4*r.alpha
	}
	if r.Base2 {
		limit *= math.Log2E
	}
	return raise(limit)
}

// score computes the scores of keys [lo, hi) and the errors of their sums.
func (r *rowBound) score(h, i, lo, hi int) {
	k, scale := r.head.k, r.heads.scale
	r.heads.q.exact(r.q, r.magnitude, r.heads.q.row(h, i), r.heads.alignedScores)
	for j := lo; j < hi; j++ {
		var sum, magnitude float64
		b, sizes := k.value[j*k.dim:][:k.dim], k.magnitude[j*k.dim:][:k.dim]
		for c, x := range r.q {
			sum += float64(x * b[c])
			magnitude += float64(r.magnitude[c] * sizes[c])
		}
		r.t[j-lo] = scale * sum
		r.e[j-lo] = scale * magnitude * (r.scores + r.heads.scalings)
		if r.Scores.Order == ExactOnce {
			r.e[j-lo] = math.Abs(r.t[j-lo]) * r.scores
		}
	}
}

// sums gathers the outputs' errors over the keys.
func (r *rowBound) sums(w, delta []float64, sink, lse float64, lo int) {
	v := r.head.v
	for _, x := range [][]float64{r.out, r.total, r.cons, r.cast, r.merge} {
		clear(x)
	}
	largest := 0.0
	for j, x := range w {
		largest = max(largest, x)
		for c, y := range v.value[(lo+j)*v.dim:][:v.dim] {
			if x != 0 || y-y == 0 {
				r.out[c] += float64(x * y)
			}
		}
	}
	least, normal := r.least*largest, r.leastNormal*largest
	unit := max(r.unit, r.lost)
	for j, x := range w {
		row := v.value[(lo+j)*v.dim:][:v.dim]
		magnitude := v.magnitude[(lo+j)*v.dim:][:v.dim]
		whole := r.head.whole[(lo+j)*v.dim:][:v.dim]
		merge := 0.0
		if r.Splits > 1 {
			at := max(math.Abs(r.t[j]), math.Abs(lse))
			merge = math.Expm1(roundoff*(4*at+8*math.Abs(lse)+r.Offset+16) + 4*r.alpha)
		}
		for c, y := range row {
			size := math.Abs(y)
			r.cons[c] += float64(x * delta[j] * math.Abs(y-r.out[c]))
			r.cast[c] += min(x*size, max(unit*x*size, least*whole[c]))
			r.total[c] += max(x*magnitude[c], normal*whole[c])
			r.merge[c] += x * size * merge
		}
	}
	if sink > 0 {
		for c, y := range r.out {
			r.cons[c] += float64(sink * delta[len(w)] * math.Abs(y))
		}
	}
}

// finish puts the errors of a row together.
func (r *rowBound) finish(out []float64, moved float64) {
	for c := range out {
		if x := r.out[c]; math.IsNaN(x) || math.IsInf(x, 0) {
			out[c] = 0
			continue
		}
		err := r.cons[c]/(1-moved) + r.cast[c]*(1+2*moved) + r.merge[c]
		err += r.values * (r.total[c]*(1+2*moved) + r.cast[c])
		size := math.Abs(r.out[c]) + err
		err += (r.sum + r.last) * size
		err += r.Out.rounding(size + err)
		out[c] = raise(err + r.underflow*(1+r.head.largest))
	}
}

// raise covers the roundings of the bound's own computation in float64.
func raise(x float64) float64 { return x * (1 + 0x1p-30) }
