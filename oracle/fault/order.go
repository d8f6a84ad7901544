package fault

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/oracle/explain"
)

// mostOrdered is the number of blocks of K up to which their order is looked for; of more two
// that are exchanged are.
const mostOrdered = 128

// part is what of blocks of K is read in another order.
type part uint8

const (
	ofCodesOnly part = iota
	ofScalesOnly
	ofBoth
)

func textOfOrder(of string) func(Fault) string {
	return func(f Fault) string {
		s := fmt.Sprintf("%s of %s are permuted along K, in blocks of %d: ", of, f.Of.words(), f.By)
		order, err := numbers(f.Values, strconv.Atoi)
		if err != nil {
			return s + f.Values
		}
		return s + orderText(order)
	}
}

// orderText puts an order in words.
func orderText(order []int) string {
	n := len(order)
	is := func(at func(i int) int) bool {
		return !slices.ContainsFunc(identity(n), func(i int) bool { return order[i] != at(i) })
	}
	var moved []int
	for i, at := range order {
		if i != at {
			moved = append(moved, i)
		}
	}
	switch {
	case len(moved) == 2:
		return fmt.Sprintf("blocks %d and %d are exchanged", moved[0], moved[1])
	case is(func(i int) int { return n - 1 - i }):
		return "they are in reverse"
	case is(func(i int) int { return i ^ 1 }):
		return "neighbours are exchanged"
	case is(func(i int) int { return (i + order[0]) % n }):
		return fmt.Sprintf("block n is read from n + %d, modulo %d", order[0], n)
	}
	for by := 2; by < n; by++ {
		if n%by == 0 && is(func(i int) int { return i%by*(n/by) + i/by }) {
			return fmt.Sprintf("they are interleaved, read as %d by %d where they are %d by %d", n/by, by, by, n/by)
		}
	}
	const most = 16
	if n > most {
		return fmt.Sprintf("they are read in the order %s and so on", strings.Join(strings.Fields(fmt.Sprint(order[:most])), ", ")[1:])
	}
	return fmt.Sprintf("they are read in the order %s", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(order)), ", "), "[]"))
}

func identity(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// numbers reads those of [Fault.Values].
func numbers[N any](values string, parse func(s string) (N, error)) (all []N, err error) {
	for _, word := range strings.Fields(values) {
		n, err := parse(word)
		if err != nil {
			return nil, notHere("values %q", values)
		}
		all = append(all, n)
	}
	return all, nil
}

func joined[N any](all []N) string { return strings.Trim(fmt.Sprint(all), "[]") }

// applyOrder reads blocks of f.By along K in the order of f.Values; what is beyond them stays.
func applyOrder(of part) func(Fault, *problem, *change) error {
	return func(f Fault, p *problem, c *change) error {
		order, err := numbers(f.Values, strconv.Atoi)
		if err != nil {
			return err
		}
		if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, identity(len(order))) || slices.Equal(order, sorted) || len(order)*f.By >= p.k+f.By {
			return notHere("blocks of %d along K in the order %s", f.By, f.Values)
		}
		last := p.k / f.By // which is cut off, if there is one
		if of != ofScalesOnly && len(order) > last && order[last] != last {
			return notHere("the last block of K, which is cut off, is read in place of another")
		}
		still := 0.0
		for to, from := range order {
			if to == from {
				still++
			}
		}
		ways, _ := math.Lgamma(float64(len(order)) + 1) // in which as many blocks are moved
		fewer, _ := math.Lgamma(still + 1)
		c.freedom = (ways - fewer) / math.Ln2
		for side, o := range c.operands(f.Of) {
			was := *o
			if of != ofScalesOnly {
				o.codes = func(dst []byte, i int) {
					row := was.row(make([]byte, was.k), i)
					copy(dst, row)
					for to, from := range order {
						copy(dst[to*f.By:min((to+1)*f.By, was.k)], row[from*f.By:])
					}
				}
			}
			if of == ofCodesOnly {
				continue
			}
			if f.By != o.width || was.grid.everyRow(order) {
				return notHere("scales of %v, of blocks of %d, in another order of blocks of %d", side, o.width, f.By)
			}
			o.scale = func(i, q int) float32 {
				if q < len(order) {
					q = order[q]
				}
				return was.scaleAt(i, q)
			}
		}
		return nil
	}
}

// everyRow reports whether an order changes no row of scales.
func (g *grid) everyRow(order []int) bool {
	for r := range g.rows {
		row := g.t.ScaleRow(r)
		for to, from := range order {
			if to < len(row) && row[to] != row[from] && (row[to] == row[to] || row[from] == row[from]) {
				return false
			}
		}
	}
	return true
}

// orders looks for orders of blocks of K that make the wrong elements what they are: from
// the right one, pairs are exchanged as long as that brings the results nearer.
func (x *explainer[T]) orders() (all []Fault) {
	sizes := []int{x.p.a.width, x.p.b.width, 16, 32, 64, 128}
	slices.Sort(sizes)
	for _, size := range slices.Compact(sizes) {
		q := x.p.k / size
		if q > mostRanges {
			continue
		}
		elements := x.finite(max(min(256, (1<<24)/(max(q, 1)*x.p.k)), 48))
		if len(elements) < 4 {
			return nil
		}
		for _, side := range []Side{A, B} {
			for of, kind := range []Kind{codesPermuted, scalesPermuted, blocksPermuted} {
				blocks := q
				if part(of) == ofScalesOnly {
					blocks = x.p.operand(side).blocks()
				}
				if part(of) != ofCodesOnly && size != x.p.operand(side).width || blocks < 2 || blocks > mostRanges {
					continue
				}
				find := x.order
				if blocks > mostOrdered {
					find = x.exchanged
				}
				if order := find(elements, side, part(of), blocks, size); order != nil {
					all = append(all, Fault{Kind: kind, Of: side, By: size, Values: joined(order)})
				}
			}
		}
	}
	return all
}

// finite returns up to n of the wrong elements, evenly, that are finite and should be.
func (x *explainer[T]) finite(n int) (all []*element) {
	for i := range x.elements[:x.wrong] {
		if e := &x.elements[i]; !math.IsInf(e.distance, 0) && !math.IsInf(e.all.total, 0) && e.all.total > 0 {
			all = append(all, e)
		}
	}
	var some []*element
	for _, i := range explain.Spread(len(all), n) {
		some = append(some, all[i])
	}
	return some
}

// order returns the order of q blocks of a size, or nil.
func (x *explainer[T]) order(elements []*element, side Side, of part, q, size int) []int {
	// What block `from` of the side adds at place `to`, over the total of the element.
	adds := make([][]float64, len(elements))
	off := make([]float64, len(elements))
	for n, e := range elements {
		adds[n] = x.moved(e, side, of, q, size)
		off[n] = x.off(e) / e.all.total
	}
	order := identity(q)
	squares := func(change []float64) (sum float64) {
		for n, d := range off {
			d -= change[n]
			sum += d * d
		}
		return sum
	}
	change := make([]float64, len(elements))
	best := squares(change)
	for range 24 {
		before := best
		for a := range q {
			for b := range a {
				for n, add := range adds {
					toA, toB := add[a*q:(a+1)*q], add[b*q:(b+1)*q]
					change[n] = toA[order[b]] - toA[order[a]] + toB[order[a]] - toB[order[b]]
				}
				if sum := squares(change); sum < best {
					best = sum
					order[a], order[b] = order[b], order[a]
					for n := range off {
						off[n] -= change[n]
					}
				}
			}
		}
		if best > 0.95*before {
			break
		}
	}
	missed := 0
	for n, e := range elements {
		if !(math.Abs(off[n])*e.all.total <= 2*x.uncertain(e)) {
			missed++
		}
	}
	if 50*missed > len(elements) || slices.Equal(order, identity(q)) {
		return nil
	}
	return order
}

// exchanged is the same if two blocks are exchanged, or nil.
func (x *explainer[T]) exchanged(elements []*element, side Side, of part, q, size int) []int {
	first := x.moved(elements[0], side, of, q, size)
	order := identity(q)
	for a := range q {
		for b := range a {
			change := func(n int, at func(to, from int) float64) bool {
				e := elements[n]
				off := x.off(e) - (at(a, b)+at(b, a)-at(a, a)-at(b, b))*e.all.total
				return math.Abs(off) <= 2*x.uncertain(e)
			}
			fits := change(0, func(to, from int) float64 { return first[to*q+from] })
			for n := 1; fits && n < len(elements); n++ {
				fits = change(n, x.adds(elements[n], side, of, size))
			}
			if fits {
				order[a], order[b] = b, a
				return order
			}
		}
	}
	return nil
}

// off is how far an element is from the right one.
func (x *explainer[T]) off(e *element) float64 { return e.got - e.want }

// uncertain is how far it is from it at most for other reasons than a fault.
func (x *explainer[T]) uncertain(e *element) float64 {
	return x.p.out.place(max(math.Abs(e.got), math.Abs(e.want))) + float64(2*x.coefficient*e.all.total)
}

// moved returns what each block of a side adds to an element at each place, over the total
// of the element.
func (x *explainer[T]) moved(e *element, side Side, of part, q, size int) []float64 {
	adds, add := make([]float64, q*q), x.adds(e, side, of, size)
	for to := range q {
		for from := range q {
			adds[to*q+from] = add(to, from)
		}
	}
	return adds
}

// adds returns what computes what a block of a side adds to an element at a place, over the total
// of the element.
func (x *explainer[T]) adds(e *element, side Side, of part, size int) func(to, from int) float64 {
	p := x.p
	step := min(size, p.block)
	a, b := p.a.valuesOf(e.i), p.b.valuesOf(e.j)
	scalesA, scalesB := p.a.rightScales(e.i), p.b.rightScales(e.j)
	outer := p.a.factor(e.i) * p.b.factor(e.j) / e.all.total
	return func(to, from int) float64 {
		ofA, ofB, scaleA, scaleB := to, to, to, to
		codes, scale := &ofA, &scaleA
		if side == B {
			codes, scale = &ofB, &scaleB
		}
		if of != ofScalesOnly {
			*codes = from
		}
		if of != ofCodesOnly {
			*scale = from
		}
		sum := 0.0
		for t := 0; t < min(size, p.k-to*size); t += step {
			part := 0.0
			if of == ofScalesOnly {
				part = e.sums[(to*size+t)/p.block]
			} else {
				v := b[ofB*size+t:][:step]
				for k, u := range a[ofA*size+t:][:step] {
					part += float64(u * v[k])
				}
			}
			sa, sb := scalesA[(scaleA*size+t)/p.a.width], scalesB[(scaleB*size+t)/p.b.width]
			sum += part * float64(sa) * float64(sb)
		}
		return sum * outer
	}
}
