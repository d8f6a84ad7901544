package flash

import (
	"math"
	"math/big"
	"slices"

	"github.com/octavo-fp8/octavo/internal/number"
)

// groups are the kept keys of a row by their exact scores, the largest first.
//
// The exponentials of distinct rational numbers are linearly independent over the rational
// numbers (Lindemann and Weierstrass). So a sum Σ c·e^x over distinct x is zero only if
// all c are, and its sign can be found in finitely many bits: that is how results are
// compared with the midpoints between two numbers.
type groups struct {
	w    *exactRow
	list []group
}

// group are keys of one score.
type group struct {
	score *big.Rat
	keys  []int
	sink  bool // the sink, which has no value, is one of them
}

// groups returns the row's groups, with the sink.
func (w *exactRow) groups() *groups {
	if w.exact != nil {
		return w.exact
	}
	g := &groups{w: w}
	g.add(w)
	if sinks := w.x.p.Sinks; sinks != nil && !math.IsInf(float64(sinks[w.h]), -1) {
		g.addSink(new(big.Rat).SetFloat64(float64(sinks[w.h])))
	}
	slices.SortFunc(g.list, func(a, b group) int { return b.score.Cmp(a.score) })
	w.exact = g
	return g
}

func (g *groups) add(w *exactRow) {
	x := w.x
	r := x.q.row(w.h, w.i)
	outer := new(big.Rat).Mul(x.q.outerRat(r), new(big.Rat).SetFloat64(x.scale))
	at := map[string]int{}
	for j := w.lo; j < w.hi; j++ {
		if math.IsInf(w.scores[j-w.lo].hi, -1) {
			continue
		}
		s := w.exactDot(r, j)
		s.Mul(s, outer)
		s.Mul(s, x.k.outerRat(w.head.firstK+j))
		key := s.String()
		n, ok := at[key]
		if !ok {
			n = len(g.list)
			at[key] = n
			g.list = append(g.list, group{score: s})
		}
		g.list[n].keys = append(g.list[n].keys, j)
	}
}

func (g *groups) addSink(score *big.Rat) {
	for n := range g.list {
		if g.list[n].score.Cmp(score) == 0 {
			g.list[n].sink = true
			return
		}
	}
	g.list = append(g.list, group{score: score, sink: true})
}

// exactDot is the product of the row of Q with key j, with their scales but outer ones.
func (w *exactRow) exactDot(r, j int) *big.Rat {
	x := w.x
	key := w.head.keys[j*x.s.Dim:][:x.s.Dim]
	sum := new(big.Float).SetPrec(2 * exactBits)
	for from := 0; from < x.s.Dim; from += x.step {
		scale := float64(x.q.scale(r, from)) * float64(x.k.scale(w.head.firstK+j, from))
		for d := from; d < min(from+x.step, x.s.Dim); d++ {
			if t := float64(w.q[d]) * float64(key[d]); t != 0 && scale != 0 {
				product := new(big.Float).SetPrec(128).Mul(big.NewFloat(t), big.NewFloat(scale))
				sum.Add(sum, product)
			}
		}
	}
	rat, _ := sum.Rat(nil)
	return rat
}

func (o *operand) outerRat(row int) *big.Rat {
	if !o.outer() {
		return big.NewRat(1, 1)
	}
	r := new(big.Rat).SetFloat64(float64(o.Codes.Outer.At(row)))
	if o.Codes.Outer.Divide {
		r.Inv(r)
	}
	return r
}

// max is the largest score, the sink's aside, rounded once.
func (g *groups) max() float64 {
	for _, x := range g.list {
		if len(x.keys) > 0 {
			f, _ := x.score.Float64()
			return f + 0
		}
	}
	return math.Inf(-1)
}

// term is c·e^x.
type term struct{ c, x *big.Rat }

// logSum is the logarithm of the sum of exponentials, with the sink's or without, rounded
// once.
func (g *groups) logSum(withSink bool) float64 {
	var sum []term
	for _, x := range g.list {
		n := int64(len(x.keys))
		if withSink && x.sink {
			n++
		}
		if n > 0 {
			sum = append(sum, term{big.NewRat(n, 1), x.score})
		}
	}
	return settle(func(prec uint) (low, high *big.Float) {
		return logInterval(sum, prec)
	}, func(b *big.Rat) int {
		return sign(sum, term{big.NewRat(-1, 1), b})
	}, float64(0))
}

// groupsOut is the output of column d, rounded once.
func groupsOut[T Output](g *groups, d int) T {
	var num, den []term
	zero := true
	for _, x := range g.list {
		v := new(big.Rat)
		for _, j := range x.keys {
			v.Add(v, g.w.exactValue(j, d))
		}
		n := int64(len(x.keys))
		if x.sink {
			n++
		}
		zero = zero && v.Sign() == 0
		num, den = append(num, term{v, x.score}), append(den, term{big.NewRat(n, 1), x.score})
	}
	var r T
	if zero {
		return r
	}
	return settle(func(prec uint) (low, high *big.Float) {
		return quotientInterval(num, den, prec)
	}, func(b *big.Rat) int {
		rest := make([]term, len(num))
		for i := range num {
			c := new(big.Rat).Mul(b, den[i].c)
			rest[i] = term{c.Sub(num[i].c, c), num[i].x}
		}
		return sign(rest)
	}, r)
}

// exactValue is a value with all its scales.
func (w *exactRow) exactValue(j, d int) *big.Rat {
	row := w.head.firstV + j
	v := float64(w.head.values[j*w.x.s.ValueDim+d]) * float64(w.x.v.scale(row, d))
	r := new(big.Rat).SetFloat64(v)
	if w.x.v.outer() {
		r.Mul(r, w.x.v.outerRat(row))
	}
	return r
}

// settle rounds a real number to a T, once, to nearest even. interval encloses it, more
// tightly the larger prec is, and compare is its sign after b is subtracted from it.
func settle[T Output](interval func(prec uint) (low, high *big.Float),
	compare func(b *big.Rat) int, _ T) T {
	for prec := uint(256); ; prec *= 2 {
		low, high := interval(prec)
		a, b := keyOf(bigTo[T](low)), keyOf(bigTo[T](high))
		switch {
		case a == b:
			return fromKey[T](a)
		case b-a > 1:
			continue
		case a == -1: // it is near zero
			if compare(new(big.Rat)) < 0 {
				return fromKey[T](a)
			}
			return fromKey[T](b)
		}
		middle := ratOf[T](a)
		middle.Add(middle, ratOf[T](b)).Mul(middle, big.NewRat(1, 2))
		s := compare(middle)
		even := a
		if a < 0 && (a+1)%2 != 0 || a >= 0 && a%2 != 0 {
			even = b
		}
		switch {
		case s < 0:
			return fromKey[T](a)
		case s > 0:
			return fromKey[T](b)
		}
		return fromKey[T](even)
	}
}

// bigTo rounds x once.
func bigTo[T Output](x *big.Float) (r T) {
	switch r := any(&r).(type) {
	case *float64:
		*r, _ = x.Float64()
	default:
		// To odd in float64, which keeps what the next rounding needs to know.
		f, accuracy := new(big.Float).SetPrec(53).SetMode(big.ToZero).Set(x).Float64()
		rest := new(big.Float).SetPrec(x.Prec()).Sub(x, big.NewFloat(f))
		if accuracy != big.Exact && !number.IsFinite(f) {
			return roundTo[T](f, 0)
		}
		low, _ := rest.Float64()
		if rest.Sign() != 0 && low == 0 {
			low = math.Copysign(math.SmallestNonzeroFloat64, float64(rest.Sign()))
		}
		return roundTo[T](f, low)
	}
	return r
}

// exponential is e^(x-top), or nil where that is below e^-prec.
func exponential(x, top *big.Rat, prec uint) *big.Float {
	t := new(big.Rat).Sub(x, top)
	if t.Cmp(new(big.Rat).SetInt64(-int64(prec))) < 0 {
		return nil
	}
	return bigExp(new(big.Float).SetPrec(prec+128).SetRat(t), prec+32)
}

// evaluate returns Σ c·e^(x-top), for top the largest of all x and x of terms given apart,
// and a bound of its error.
func evaluate(terms []term, top *big.Rat, prec uint) (sum, err *big.Float) {
	work := prec + 64
	sum, err = new(big.Float).SetPrec(work), new(big.Float).SetPrec(64)
	for _, t := range terms {
		c := new(big.Float).SetPrec(work).SetRat(t.c)
		size := new(big.Float).SetPrec(64).Abs(c)
		e := exponential(t.x, top, prec)
		if e != nil {
			sum.Add(sum, c.Mul(c, e))
		}
		// Each term is off by less than a part in 2^prec of c, and so is one left out.
		err.Add(err, size)
	}
	err.SetMantExp(err, -int(prec)+1)
	return sum, err
}

func highest(terms []term) *big.Rat {
	top := terms[0].x
	for _, t := range terms[1:] {
		if t.x.Cmp(top) > 0 {
			top = t.x
		}
	}
	return top
}

// sign is the sign of Σ c·e^x. Terms of equal x are joined first.
func sign(terms []term, more ...term) int {
	var all []term
	for _, t := range append(slices.Clip(terms), more...) {
		n := slices.IndexFunc(all, func(u term) bool { return u.x.Cmp(t.x) == 0 })
		if n >= 0 {
			all[n].c = new(big.Rat).Add(all[n].c, t.c)
			continue
		}
		all = append(all, t)
	}
	all = slices.DeleteFunc(all, func(t term) bool { return t.c.Sign() == 0 })
	if len(all) == 0 {
		return 0
	}
	top := highest(all)
	for prec := uint(128); ; prec *= 2 {
		sum, err := evaluate(all, top, prec)
		if new(big.Float).Abs(sum).Cmp(err) > 0 {
			return sum.Sign()
		}
	}
}

// logInterval encloses the logarithm of Σ c·e^x, of positive c.
func logInterval(terms []term, prec uint) (low, high *big.Float) {
	top := highest(terms)
	sum, err := evaluate(terms, top, prec)
	work := prec + 128
	base := new(big.Float).SetPrec(work + uint(max(top.Num().BitLen(), 0))).SetRat(top)
	// The sum is at least 1: its logarithm is off by no more than the sum.
	l := bigLog(sum, work)
	width := new(big.Float).SetPrec(64).Add(err, new(big.Float).SetMantExp(big.NewFloat(1),
		-int(prec)))
	l.SetPrec(base.Prec()).Add(l, base)
	slack := new(big.Float).SetMantExp(new(big.Float).SetPrec(64).Abs(base), -int(prec)-64)
	width.Add(width, slack)
	return new(big.Float).Sub(l, width), new(big.Float).Add(l, width)
}

// bigLog is the logarithm of x, which is from 1 to 2^40, to 2^-prec.
func bigLog(x *big.Float, prec uint) *big.Float {
	start, _ := x.Float64()
	l := new(big.Float).SetPrec(prec + 64).SetFloat64(math.Log(start))
	for right := uint(40); right < prec+8; right *= 2 {
		e := bigExp(new(big.Float).Neg(l), prec+32)
		e.Mul(e, x)
		l.Add(l, e.Sub(e, big.NewFloat(1)))
	}
	return l
}

// quotientInterval encloses Σ num/Σ den; those of den are positive.
func quotientInterval(num, den []term, prec uint) (low, high *big.Float) {
	top := highest(den)
	n, nErr := evaluate(num, top, prec)
	d, dErr := evaluate(den, top, prec)
	work := prec + 64
	q := new(big.Float).SetPrec(work).Quo(n, d)
	// |n/d - n'/d'| is at most (nErr + |q|·dErr)/(d-dErr).
	width := new(big.Float).SetPrec(64).Abs(q)
	width.Mul(width, dErr).Add(width, nErr)
	width.Quo(width, new(big.Float).Sub(d, dErr))
	slack := new(big.Float).SetMantExp(new(big.Float).SetPrec(64).Abs(q), -int(prec))
	width.Add(width, slack)
	width.SetMantExp(width, 1)
	return new(big.Float).SetPrec(work).Sub(q, width), new(big.Float).SetPrec(work).Add(q, width)
}
