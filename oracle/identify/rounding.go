package identify

import (
	"math"
	"slices"
)

// roundingProbes are a pair of large products that cancel and a small one at a place, of
// every size, of both signs, and with mantissas 1 and 1.5.
type roundingProbes struct {
	size    *magnitudes
	triples []triple
	smalls  []int // places of small products, each with a row of B for each size
}

// triple is where the products are.
type triple struct {
	i, j, k int
	stride  int  // the three are 0, stride and 2·stride
	square  bool // the large ones are 2.25 units: more than 2
}

// variants are signs and mantissas of the small product.
var variants = []float32{1, 1.5, -1, -1.5}

func (r *roundingProbes) make(s Setup) Product {
	size, places := s.magnitudes(), s.places()
	r.size = size
	for stride := 1; 2*stride < places; stride *= 2 {
		p := [3]int{0, stride, 2 * stride}
		for last := range 3 {
			t := triple{p[0], p[1], p[2], stride, false}
			switch last {
			case 0:
				t = triple{p[1], p[2], p[0], stride, false}
			case 1:
				t = triple{p[0], p[2], p[1], stride, false}
			}
			r.triples = append(r.triples, t)
			if last == 2 && stride <= 4 {
				t.square = true
				r.triples = append(r.triples, t)
			}
		}
	}
	r.smalls = []int{0}
	for k := 1; k < places; k *= 2 {
		r.smalls = append(r.smalls, k)
	}
	a, b := newRows(s), newRows(s)
	for _, t := range r.triples {
		for _, e := range size.sizesA {
			for _, v := range variants {
				a.add(func(row []float32) {
					row[t.i], row[t.j], row[t.k] = size.largeA, -size.largeA, size.variant(v, e)
					if t.square {
						row[t.i], row[t.j] = size.squareA, -size.squareA
					}
				})
			}
		}
	}
	for _, k := range r.smalls {
		for _, e := range size.sizesB {
			b.add(func(row []float32) {
				for _, other := range r.smalls {
					row[other] = size.largeB
				}
				row[k] = exp2(e)
			})
		}
	}
	return s.product("rounding", "two large products cancel, small ones of all sizes lose bits beside them: how many are kept, and how they are rounded", a, b)
}

// ladder is what became of small products: for each variant, and each size 2^-d of a
// unit, what was returned, in units. NaN: there is no such product.
type ladder [4][]float64

// read returns the ladders of all triples.
func (r *roundingProbes) read(c []float32, n int) []ladder {
	all := make([]ladder, len(r.triples))
	for t := range all {
		column := slices.Index(r.smalls, r.triples[t].k) * len(r.size.sizesB)
		all[t] = r.size.ladder(c, n, t*r.size.perA(), column, 0)
	}
	return all
}

// perA is the number of rows of A for the small product of a place.
func (m *magnitudes) perA() int { return len(m.sizesA) * len(variants) }

// variant is v·2^e, or 0 where no place can hold that.
func (m *magnitudes) variant(v float32, e int) float32 {
	if !m.has(v, e) {
		return 0
	}
	return v * exp2(e)
}

// ladder reads perA rows from row on, and a column for each size from column on.
func (m *magnitudes) ladder(c []float32, n, row, column int, base float64) (l ladder) {
	unit := int(math.Log2(m.unit))
	for v := range variants {
		l[v] = slices.Repeat([]float64{math.NaN()}, m.deepest+1)
		for x, e := range m.sizesA {
			for y, f := range m.sizesB {
				if d := unit - e - f; d >= 0 && d <= m.deepest && m.has(variants[v], e) {
					l[v][d] = (float64(c[(row+x*len(variants)+v)*n+column+y]) - base) / m.unit
				}
			}
		}
	}
	return l
}

// Rounding is what happens to the bits that are not kept.
type Rounding uint8

// Roundings.
const (
	noRounding  Rounding = iota // nothing was seen to be lost
	towardZero                  // truncation of magnitudes
	nearestEven                 // to nearest, ties to even
	nearestAway                 // to nearest, ties away from zero
	downward                    // toward minus infinity
	upward                      // toward infinity
	zeroOrEven                  // towardZero or nearestEven: the probes do not say which
	otherRounding
)

// kept is the number of fraction bits after which a ladder loses bits, below a unit, and
// how. Where nothing is lost it is that of the least product, and noRounding.
func (l *ladder) kept() (bits int, r Rounding) {
	for d := range l[0] {
		if l[0][d] != math.Ldexp(1, -d) || l[2][d] != -math.Ldexp(1, -d) {
			return d - 1, l.rounding(d)
		}
	}
	return len(l[0]) - 1, noRounding
}

// rounding tells how 1, 1.5, -1 and -1.5 halves of the last place d-1 are rounded.
func (l *ladder) rounding(d int) Rounding {
	found := otherRounding
	for r, want := range map[Rounding][4]float64{
		towardZero: {0, 0, 0, 0}, nearestEven: {0, 1, 0, -1}, nearestAway: {1, 1, -1, -1}, downward: {0, 0, -1, -1}, upward: {1, 1, 0, 0},
	} {
		fits := true
		for v := range l {
			got := math.Ldexp(l[v][d], d-1)
			fits = fits && (got == want[v] || math.IsNaN(got) && v%2 == 1)
		}
		switch {
		case fits && found == otherRounding:
			found = r
		case fits:
			found = zeroOrEven // the only two that agree in ties
		}
	}
	return found
}

// relation is how three products at a stride are added.
type relation struct {
	stride int
	lost   [3]bool // the one beside the other two: the last, the middle, the first
	bits   [3]int
	how    [3]Rounding
	square int // bits beside large products above 2, -1 where not asked
}

// fused reports whether each is lost beside the other two.
func (r *relation) fused() bool { return !slices.Contains(r.lost[:], false) }

// relations sorts the ladders by stride.
func (r *roundingProbes) relations(ladders []ladder) (all []relation) {
	for t, triple := range r.triples {
		if len(all) == 0 || all[len(all)-1].stride != triple.stride {
			all = append(all, relation{stride: triple.stride, square: -1})
		}
		last := &all[len(all)-1]
		bits, how := ladders[t].kept()
		if triple.square {
			last.square = bits
			continue
		}
		which := 0
		switch triple.k {
		case triple.stride:
			which = 1
		case 0:
			which = 2
		}
		last.lost[which], last.bits[which], last.how[which] = bits < r.size.deepest, bits, how
	}
	return all
}

// outputProbes are one, two or three large products that do not cancel, of either sign,
// and a small one.
type outputProbes struct{ size *magnitudes }

var (
	outputCounts = []int{1, 2, 3} // 1.5, 3 and 4.5 units: each in another binade
	outputPlaces = []int{8, 7, 4} // of large products, from the end: a later step would cut the sum once more
	outputSmall  = 3              // in the same step, be it of eight products or of interleaved ones
	signs        = []float32{1, -1}
)

func (o *outputProbes) make(s Setup) Product {
	size := s.magnitudes()
	o.size = size
	a, b := newRows(s), newRows(s)
	for _, count := range outputCounts {
		for _, sign := range signs {
			for _, e := range size.sizesA {
				for _, v := range variants {
					a.add(func(row []float32) {
						for _, k := range outputPlaces[:count] {
							row[len(row)-k] = sign * size.largeA
						}
						row[len(row)-outputSmall] = size.variant(v, e)
					})
				}
			}
		}
	}
	for _, e := range size.sizesB {
		b.add(func(row []float32) {
			for _, k := range outputPlaces {
				row[len(row)-k] = size.largeB
			}
			row[len(row)-outputSmall] = exp2(e)
		})
	}
	return s.product("output", "large products that stay, and small ones of all sizes: how many bits the result of a step has", a, b)
}

// read returns for one, two and three large products how many bits below a unit are kept
// beside them, and how what is lost of the last is rounded.
func (o *outputProbes) read(c []float32, n int) (bits [3]int, how Rounding) {
	var both [2]Rounding // of positive and of negative sums
	for i, count := range outputCounts {
		for x, sign := range signs {
			l := o.size.ladder(c, n, (i*len(signs)+x)*o.size.perA(), 0, 1.5*float64(sign)*float64(count)*o.size.unit)
			bits[i], both[x] = l.kept()
		}
	}
	switch both {
	case [2]Rounding{downward, upward}:
		return bits, towardZero
	case [2]Rounding{both[0], both[0]}:
		return bits, both[0]
	}
	return bits, otherRounding
}
