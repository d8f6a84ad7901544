package identify

import (
	"fmt"
	"slices"
)

// orderProbes are pairs of large products that cancel, one in each row of A, and small
// ones, one in each row of B. Large products have their places, two in every eight, the
// small ones all others, so that every pair meets every small product.
type orderProbes struct {
	pairs  []pair
	places []int // of small products
	cells  int   // of 8
	small  float32
}

type pair struct{ i, j int } // i < j

// cell is a stretch of K with one place for a pair.
const cell = 8

// first is the place of the first of two large products of a cell. It moves, so that
// every residue of 8 is met.
func first(q int) int { return cell*q + 2*(q%4) }

func (o *orderProbes) make(s Setup) Product {
	places, size := s.places(), s.magnitudes()
	o.cells, o.small = places/cell, size.small
	isLarge := make([]bool, places)
	for q := range o.cells {
		isLarge[first(q)], isLarge[first(q)+1] = true, true
		o.pairs = append(o.pairs, pair{first(q), first(q) + 1})
	}
	for q := range o.cells - 1 {
		o.pairs = append(o.pairs, pair{first(q), first(q + 1)})
	}
	for step := 2; step < o.cells; step *= 2 {
		for q := 0; q+step < o.cells; q += step {
			o.pairs = append(o.pairs, pair{first(q), first(q + step)})
		}
	}
	a, b := newRows(s), newRows(s)
	for _, p := range o.pairs {
		a.add(func(row []float32) {
			for k := range row {
				if !isLarge[k] {
					row[k] = size.smallA
				}
			}
			row[p.i], row[p.j] = size.largeA, -size.largeA
		})
	}
	for k := range places {
		if isLarge[k] {
			continue
		}
		o.places = append(o.places, k)
		b.add(func(row []float32) {
			for j, large := range isLarge {
				if large {
					row[j] = size.largeB
				}
			}
			row[k] = size.smallB
		})
	}
	return s.product("order", "two large products cancel, a small one survives or is lost: which products are added before the two meet", a, b)
}

// lost is what pairs lose: for each, whether the small product at each place is lost.
type lost [][]bool

// read returns what was lost, and the number of elements that are neither the small
// product nor zero.
func (o *orderProbes) read(c []float32, n int) (l lost, odd int) {
	for r := range o.pairs {
		row := make([]bool, len(o.places))
		for j := range row {
			switch c[r*n+j] {
			case 0:
				row[j] = true
			case o.small:
			default:
				odd++
			}
		}
		l = append(l, row)
	}
	return l, odd
}

// structure is the order of additions, as far as it is that of a chain of steps.
type structure struct {
	fused   int     // products of the first step; 2 says that no three are added at once
	exact   bool    // nothing is lost in a step
	steps   [][]int // which products each step adds, where it adds 8 or more
	carried bool    // the sum so far is lost beside products that cancel in a later step
	inner   int     // products of a chain of steps before its sum is added to others; 0 is all, -1 nothing regular
	outer   int     // products of such sums before theirs is added to others, likewise
}

// analyse reads the structure from what pairs lose.
func (o *orderProbes) analyse(l lost) (s structure) {
	if nothing(l[:o.cells]) {
		if s, found := o.exact(l); found {
			return s
		}
		return structure{fused: 2, inner: -1}
	}
	own := o.own(l)
	at := map[string]int{}
	for q := range o.cells {
		key := fmt.Sprint(own[q], l[q])
		if _, known := at[key]; !known {
			at[key] = len(s.steps)
			s.steps = append(s.steps, o.where(own[q]))
		}
		i := at[key]
		s.steps[i] = append(s.steps[i], first(q), first(q)+1)
		s.carried = s.carried || !within(l[q], own[q])
	}
	for _, products := range s.steps {
		slices.Sort(products)
	}
	if s.fused = len(s.steps[0]); s.fused < cell {
		s.steps = nil // cells have but one pair, so that steps without one are not seen
	}
	var pairs []int
	for q := range o.cells {
		pairs = append(pairs, q)
	}
	s.inner = gap(o.starts(l, pairs))
	if s.inner > 0 {
		pairs = nil
		for r := o.cells; r < len(o.pairs); r++ {
			if p := o.pairs[r]; p.i/s.inner != p.j/s.inner {
				pairs = append(pairs, r)
			}
		}
		s.outer = gap(o.starts(l, pairs))
	}
	return s
}

// nothing reports whether no pair loses anything.
func nothing(l lost) bool {
	return !slices.ContainsFunc(l, func(row []bool) bool { return slices.Contains(row, true) })
}

// exact looks for a chain of steps of consecutive products, in each of which nothing is
// lost, whose results are added as they come or are terms of the next step.
func (o *orderProbes) exact(l lost) (s structure, found bool) {
	n := o.cells * cell
	for fused := 3; fused <= n; fused++ {
		for _, carried := range []bool{false, true} {
			s = structure{fused: fused, exact: true, carried: carried}
			if o.fits(l, &s, n) {
				return s, true
			}
		}
		for s.inner = 2 * fused; s.inner < n; s.inner += fused {
			for _, s.carried = range []bool{false, true} {
				if o.fits(l, &s, s.inner) {
					return s, true
				}
			}
		}
	}
	return s, false
}

// fits reports whether pairs lose what they do in chains of so many products: those of a
// step nothing, those of two steps what is added from the chain's begin to the second, and
// those of two chains all before the second's end.
func (o *orderProbes) fits(l lost, s *structure, chain int) bool {
	for r, p := range o.pairs {
		from, to := p.j/chain*chain, (p.j/s.fused+1)*s.fused
		switch {
		case p.i/s.fused == p.j/s.fused:
			to = from
		case p.i/chain != p.j/chain:
			from, to = 0, from+chain
		case s.carried:
			to -= s.fused
		}
		for x, place := range o.places {
			if l[r][x] != (place >= from && place < to) {
				return false
			}
		}
	}
	return true
}

// own returns for each cell's pair what it loses in its own step: what no pair loses
// that loses less.
func (o *orderProbes) own(l lost) [][]bool {
	own := make([][]bool, o.cells)
	for q := range own {
		own[q] = append([]bool(nil), l[q]...)
		for r := range o.cells {
			if !within(l[r], l[q]) || within(l[q], l[r]) {
				continue
			}
			for j, b := range l[r] {
				own[q][j] = own[q][j] && !b
			}
		}
	}
	return own
}

// within reports whether all that a loses is lost by b too.
func within(a, b []bool) bool {
	for j := range a {
		if a[j] && !b[j] {
			return false
		}
	}
	return true
}

// where lists the places that are lost.
func (o *orderProbes) where(row []bool) (places []int) {
	for j, b := range row {
		if b {
			places = append(places, o.places[j])
		}
	}
	return places
}

// starts lists the cells in which what is added before each pair meets begins.
func (o *orderProbes) starts(l lost, pairs []int) (starts []int) {
	for _, r := range pairs {
		least := o.pairs[r].i
		if at := slices.Index(l[r], true); at >= 0 {
			least = min(least, o.places[at])
		}
		starts = append(starts, least/cell*cell)
	}
	return starts
}

// gap is the distance of places that are as far from each other as from 0: 0 if there is
// but one, -1 if they are not.
func gap(places []int) int {
	slices.Sort(places)
	places = slices.Compact(places)
	if len(places) <= 1 {
		return 0
	}
	d := places[1] - places[0]
	for i, p := range places {
		if p != i*d {
			return -1
		}
	}
	return d
}
