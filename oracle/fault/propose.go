package fault

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/oracle/explain"
)

// otherRows lists faults that read a row of a grid of scales for the only one that wrong
// elements are of, and counts those that do not fit.
func (x *explainer[T]) otherRows(ctx context.Context) (all []Fault, err error) {
	const first = 8
	wrong := x.wrongOnes()
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

// wrongOnes are the wrong elements.
func (x *explainer[T]) wrongOnes() (all []*element) {
	for n := range x.elements[:x.wrong] {
		all = append(all, &x.elements[n])
	}
	return all
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

// otherLines lists faults that read for many rows of a grid the scales of other rows: as far
// away, or as many times as far from the first.
func (x *explainer[T]) otherLines() (all []Fault) {
	for _, side := range []Side{A, B} {
		g := &x.p.operand(side).grid
		lines := map[int][]*element{}
		for _, e := range x.finite(x.wrong) {
			r := e.i / g.height
			if side == B {
				r = e.j / g.height
			}
			lines[r] = append(lines[r], e)
		}
		if g.rows < 3 || len(lines) < 2 || g.rows > mostRows || g.uniform() {
			continue
		}
		off, times := map[int]int{}, map[int]int{}
		rows := slices.Sorted(maps.Keys(lines))
		some := explain.Spread(len(rows), 64)
		for _, n := range some {
			r := rows[n]
			for other := range g.rows {
				if other == r || !x.hasScalesOf(side, lines[r], other) {
					continue
				}
				off[other-r]++
				for by := 2; by < min(g.rows, 65); by++ {
					if r*by%g.rows == other {
						times[by]++
					}
				}
			}
		}
		x.tried += 2 * g.rows
		add := func(kind Kind, votes map[int]int, known ...int) {
			for by, n := range votes {
				same := func(k int) bool { return (by-k)%g.rows == 0 } // as long as the end is followed by the beginning
				if 10*n >= 8*len(some) && !slices.ContainsFunc(known, same) {
					all = append(all, Fault{Kind: kind, Of: side, By: by})
				}
			}
		}
		add(scalesRowsOff, off, 1, -1, 2)
		add(scalesTimesRow, times)
	}
	slices.SortFunc(all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Of, b.Of), cmp.Compare(a.Kind, b.Kind), cmp.Compare(max(a.By, -a.By), max(b.By, -b.By)), cmp.Compare(a.By, b.By))
	})
	return all[:min(len(all), 64)]
}

// mostRows is the number of rows of a grid up to which each is tried for others.
const mostRows = 1 << 13

// hasScalesOf reports whether elements of a row are what another row's scales make of them.
func (x *explainer[T]) hasScalesOf(side Side, elements []*element, row int) bool {
	p := x.p
	for _, e := range elements[:min(len(elements), 8)] {
		var sum magnitude
		for q := range e.sums {
			at := q * p.block
			sa, sb := p.a.rightScale(e.i, at/p.a.width), p.b.rightScale(e.j, at/p.b.width)
			if side == A {
				sa = p.A.ScaleRow(row)[at/p.a.width]
			} else {
				sb = p.B.ScaleRow(row)[at/p.b.width]
			}
			sum = sum.plus(magnitude{e.sums[q], e.totals[q]}.times(float64(sa) * float64(sb)))
		}
		sum = sum.times(p.a.factor(e.i) * p.b.factor(e.j))
		// The right element is got less what is off, and so is the right product.
		if d := e.all.value + x.off(e) - sum.value; !(math.Abs(d) <= x.uncertain(e)+float64(2*x.coefficient*sum.total)) {
			return false
		}
	}
	return true
}

// products lists faults of one product of K, of two neighbours, or of one code, that make
// elements what they are, and counts those that do not.
func (x *explainer[T]) products() (all []Fault) {
	const most, enough = 12, 32
	elements := x.finite(most)
	if len(elements) < 2 {
		return nil
	}
	oneRow, oneCol := true, true
	for _, e := range x.elements[:x.wrong] {
		oneRow = oneRow && e.i == x.elements[0].i
		oneCol = oneCol && e.j == x.elements[0].j
	}
	p := x.p
	ua, ub := values(p.A.Format), values(p.B.Format)
	scale := func(e *element, k int) float64 {
		return float64(p.a.rightScale(e.i, k/p.a.width)) * float64(p.b.rightScale(e.j, k/p.b.width)) * (p.a.factor(e.i) * p.b.factor(e.j))
	}
	product := func(e *element, ka, kb, at int) float64 {
		return float64(ua[p.A.Row(e.i)[ka]]*ub[p.B.Row(e.j)[kb]]) * scale(e, at)
	}
	fits := func(change func(e *element) float64) bool {
		x.tried++
		for _, e := range elements {
			if !(math.Abs(x.off(e)-change(e)) <= x.uncertain(e)) {
				return false
			}
		}
		return len(all) < enough
	}
	for k := range p.k {
		f := Fault{From: k, To: k + 1}
		if k+1 < p.k && fits(func(e *element) float64 { return -product(e, k, k, k) }) {
			f.Kind = kLost
			all = append(all, f)
		}
		if fits(func(e *element) float64 { return product(e, k, k, k) }) {
			f.Kind = kDoubled
			all = append(all, f)
		}
		for side, one := range map[Side]bool{A: oneRow, B: oneCol} {
			if one {
				all = append(all, x.otherCodes(side, k, elements, fits, scale)...)
			}
		}
		if k+1 == p.k {
			break
		}
		f.To++
		for _, side := range []Side{A, B} {
			// What is in one row of C only is no fault of B.
			if one := side == A && oneCol && !oneRow || side == B && oneRow && !oneCol; !one && fits(func(e *element) float64 {
				was := product(e, k, k, k) + product(e, k+1, k+1, k+1)
				if side == A {
					return product(e, k+1, k, k) + product(e, k, k+1, k+1) - was
				}
				return product(e, k, k+1, k) + product(e, k+1, k, k+1) - was
			}) {
				if f.Kind, f.Of = codePair, side; k%2 == 0 && p.operand(side).format.Bits() == 4 {
					f.Kind = nibblePair
				}
				all = append(all, f)
			}
		}
	}
	x.tried -= len(all)
	slices.SortStableFunc(all, func(a, b Fault) int {
		return cmp.Or(table.Compare(a.Kind, b.Kind), cmp.Compare(a.Of, b.Of), cmp.Compare(a.From, b.From), cmp.Compare(a.By, b.By))
	})
	return all
}

// otherCodes lists what code k of the only row of a side may be read as.
func (x *explainer[T]) otherCodes(side Side, k int, elements []*element, fits func(change func(e *element) float64) bool, scale func(e *element, k int) float64) (all []Fault) {
	p := x.p
	o, other := &p.a, p.B
	row, of := elements[0].i, func(e *element) int { return e.j }
	if side == B {
		o, other = &p.b, p.A
		row, of = elements[0].j, func(e *element) int { return e.i }
	}
	u, v := values(o.format), values(other.Format)
	factor := func(e *element) float64 { return v[other.Row(of(e))[k]] * scale(e, k) }
	var most *element
	for _, e := range elements {
		if most == nil || math.Abs(factor(e)) > math.Abs(factor(most)) {
			most = e
		}
	}
	part := factor(most)
	if part == 0 || part-part != 0 {
		return nil
	}
	was := u[o.t.Row(row)[k]]
	off, uncertain := x.off(most)/part, x.uncertain(most)/math.Abs(part)
	if math.Abs(was+off) <= uncertain {
		return nil // it may be 0: then the product is lost
	}
	var codes []int
	for code := range 1 << o.format.Bits() {
		if d := u[code] - was; d != 0 && math.Abs(d-off) <= uncertain && fits(func(e *element) float64 { return d * factor(e) }) {
			codes = append(codes, code)
		}
	}
	if len(codes) == 0 {
		return nil
	}
	slices.SortStableFunc(codes, func(a, b int) int { return cmp.Compare(math.Abs(u[a]-was-off), math.Abs(u[b]-was-off)) })
	return []Fault{{Kind: codeMisread, Of: side, From: k, To: k + 1, By: row, Values: joined(codes)}}
}

// staleRow lists other scales of the only row of a grid that wrong elements are of: those
// that fit best.
func (x *explainer[T]) staleRow() (all []Fault) {
	wrong, elements := x.wrongOnes(), x.finite(x.wrong)
	for _, side := range []Side{A, B} {
		o := x.p.operand(side)
		in := x.p.scaleRow(side, wrong)
		q := o.blocks()
		if in == (Region{}) || len(elements) < 2*q || q > mostOrdered {
			continue
		}
		// Normal equations for what each block's scale is off, in units of it.
		m, y := make([]float64, q*q), make([]float64, q)
		part := make([]float64, q)
		for _, e := range elements {
			clear(part)
			for n, sum := range e.sums {
				at := n * x.p.block
				part[at/o.width] += sum * float64(x.p.a.rightScale(e.i, at/x.p.a.width)) * float64(x.p.b.rightScale(e.j, at/x.p.b.width))
			}
			weight := x.p.a.factor(e.i) * x.p.b.factor(e.j) / e.all.total
			for n := range part {
				part[n] *= weight
			}
			off := x.off(e) / e.all.total
			for r, a := range part {
				y[r] += float64(a * off)
				for c, b := range part {
					m[r*q+c] += float64(a * b)
				}
			}
		}
		if !solve(m, y) {
			continue
		}
		factors := make([]string, q)
		several := 0
		for n, off := range y {
			if math.Abs(off) < 1e-5 {
				off = 0
			} else {
				several++
			}
			factors[n] = fmt.Sprint(float32(1 + off))
		}
		if several > 1 || q == 1 && several > 0 {
			all = append(all, Fault{Kind: scalesStale, Of: side, By: max(in.FromRow, in.FromCol) / o.grid.height, Values: strings.Join(factors, " ")})
		}
	}
	return all
}

// solve solves m·x = y for a symmetric matrix, which it changes, in place of y, unless that
// cannot be told.
func solve(m, y []float64) bool {
	n := len(y)
	for k := range n {
		pivot := m[k*n+k]
		if !(pivot > 1e-13) {
			return false
		}
		for r := k + 1; r < n; r++ {
			f := m[r*n+k] / pivot
			for c := k; c < n; c++ {
				m[r*n+c] -= float64(f * m[k*n+c])
			}
			y[r] -= float64(f * y[k])
		}
	}
	for k := n - 1; k >= 0; k-- {
		for c := k + 1; c < n; c++ {
			y[k] -= float64(m[k*n+c] * y[c])
		}
		y[k] /= m[k*n+k]
	}
	return true
}
