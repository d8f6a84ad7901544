package fault

import (
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/oracle/explain"
)

// otherRows lists faults that read a row of a grid of scales for the only one that wrong
// elements are of, and counts those that do not fit.
func (x *explainer[T]) otherRows(ctx context.Context) (all []Fault, err error) {
	const first = 8
	wrong := make([]*element, x.wrong)
	for n := range wrong {
		wrong[n] = &x.elements[n]
	}
	var w scratch
	for _, side := range []Side{A, B} {
		g := &x.p.operand(side).grid
		in := x.p.scaleRow(side, wrong)
		if in == (Region{}) || g.rows > mostBy {
			continue
		}
		for r := range g.rows {
			f := Fault{Kind: scalesOfRow, Of: side, By: r}
			h, err := newChange(x.p, f)
			if r == max(in.FromRow, in.FromCol)/g.height || err != nil {
				continue
			}
			x.tried++
			fit := true
			for _, n := range explain.Spread(len(wrong), first) {
				_, o, _, err := x.try(ctx, h, wrong[n], &w)
				if err != nil {
					return nil, err
				}
				if fit = o != explain.Refuted; !fit {
					break
				}
			}
			if fit {
				all = append(all, f)
			}
		}
	}
	x.tried -= len(all)
	return all, nil
}

// fitted lists faults with a factor that is taken from the result: all of C, or a block of
// K, times a factor.
func (x *explainer[T]) fitted() (all []Fault) {
	var ratios []float64
	for n := range x.elements[:x.wrong] {
		e := &x.elements[n]
		if r := e.got / e.want; r == r && !math.IsInf(r, 0) && r != 0 {
			ratios = append(ratios, r)
		}
	}
	if len(ratios) > 0 {
		slices.Sort(ratios)
		all = append(all, Fault{Kind: scaledResults, Factor: ratios[len(ratios)/2]})
	}
	for _, side := range []Side{A, B} {
		width := x.p.a.width
		if side == B {
			width = x.p.b.width
		}
		for lo := 0; lo < x.p.k && x.p.k/width <= mostRanges; lo += width {
			f := Fault{Kind: kFactor, Of: side, From: lo, To: min(lo+width, x.p.k)}
			var ok bool
			if f.Factor, ok = x.factor(f.From, f.To); ok {
				all = append(all, f)
			}
		}
	}
	return all
}

// factor returns by what the contribution of products [from, to) of K would have to be
// multiplied: as the element has it to which they contribute the most. As far as that is
// uncertain, it is a power of two or 0.
func (x *explainer[T]) factor(from, to int) (factor float64, ok bool) {
	lo, okLo := slices.BinarySearch(x.cuts, from)
	hi, okHi := slices.BinarySearch(x.cuts, to)
	if !okLo || !okHi {
		return 0, false
	}
	most, off, uncertain := 0.0, 0.0, 0.0
	for n := range x.elements[:x.wrong] {
		e := &x.elements[n]
		part := e.between(lo, hi).value
		if d := e.got - e.want; math.Abs(part) > most && !math.IsInf(part, 0) && d == d && !math.IsInf(d, 0) {
			most, off = math.Abs(part), d/part
			uncertain = (x.p.out.place(e.got) + float64(x.coefficient*e.all.total)) / most
		}
	}
	factor = 1 + off
	if math.Abs(factor) <= uncertain {
		return 0, most > 0
	}
	if power := math.Exp2(math.Round(math.Log2(factor))); math.Abs(factor-power) <= min(uncertain, power/16) {
		factor = power
	}
	return factor, most > 0 && factor > 1e-6 && math.Abs(factor-1) > 1e-6
}
