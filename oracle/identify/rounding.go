package identify

import (
	"math"
	"slices"
)

// roundingProbes are a pair of large products that cancel and a small one at a place, of
// every size, of both signs, and with mantissas 1 and 1.5.
type roundingProbes struct {
	triples []triple
	smalls  []int // places of small products, each with a row of B for each size
}

// triple is where the products are.
type triple struct {
	i, j, k int
	stride  int  // the three are 0, stride and 2·stride
	square  bool // the large ones are 2.25 units: more than 2
}

// Sizes of the small product: that of A times that of B.
var (
	sizesA = []int{-6, 7}
	sizesB = sizes(-9, 7)
)

func sizes(lo, hi int) (all []int) {
	for e := lo; e <= hi; e++ {
		all = append(all, e)
	}
	return all
}

// variants are signs and mantissas of the small product.
var variants = []float32{1, 1.5, -1, -1.5}

const (
	deepest = 29 // the small product of the least size is 2^-deepest units
	perA    = 8  // rows of A for a triple: sizes and variants
)

func (r *roundingProbes) make(s Setup) Product {
	for stride := 1; 2*stride < s.K; stride *= 2 {
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
	for k := 1; k < s.K; k *= 2 {
		r.smalls = append(r.smalls, k)
	}
	a, b := rows{k: s.K}, rows{k: s.K}
	for _, t := range r.triples {
		for _, e := range sizesA {
			for _, v := range variants {
				a.add(func(row []float32) {
					row[t.i], row[t.j], row[t.k] = largeA, -largeA, v*exp2(e)
					if t.square {
						row[t.i], row[t.j] = squareA, -squareA
					}
				})
			}
		}
	}
	for _, k := range r.smalls {
		for _, e := range sizesB {
			b.add(func(row []float32) {
				for _, other := range r.smalls {
					row[other] = largeB
				}
				row[k] = exp2(e)
			})
		}
	}
	return Product{"rounding", "two large products cancel, small ones of all sizes lose bits beside them: how many are kept, and how they are rounded",
		a.tensor(s, "a", s.BlockA), b.tensor(s, "b", s.BlockB)}
}

// exp2 is 2^e.
func exp2(e int) float32 { return float32(math.Ldexp(1, e)) }

// ladder is what became of small products: for each variant, and each size 2^-d of a
// unit, what was returned, in units.
type ladder [4][deepest + 1]float64

// read returns the ladders of all triples.
func (r *roundingProbes) read(c []float32, n int) []ladder {
	all := make([]ladder, len(r.triples))
	for t := range all {
		readLadder(&all[t], c, n, t*perA, slices.Index(r.smalls, r.triples[t].k)*len(sizesB), 0)
	}
	return all
}

// readLadder reads the eight rows from row on and a column for each size from column on.
func readLadder(l *ladder, c []float32, n, row, column int, base float64) {
	for x, e := range sizesA {
		for v := range variants {
			for y, f := range sizesB {
				if d := 14 - e - f; d >= 0 && d <= deepest {
					l[v][d] = (float64(c[(row+x*len(variants)+v)*n+column+y]) - base) / unit
				}
			}
		}
	}
}

// Rounding is what happens to the bits that are not kept.
type Rounding uint8

// Roundings.
const (
	NoRounding  Rounding = iota // nothing was seen to be lost
	TowardZero                  // truncation of magnitudes
	NearestEven                 // to nearest, ties to even
	NearestAway                 // to nearest, ties away from zero
	Down                        // toward minus infinity
	Up                          // toward infinity
	OtherRounding
)

// kept is the number of fraction bits after which a ladder loses bits, below a unit, and
// how. It is deepest, and NoRounding, where nothing is lost.
func (l *ladder) kept() (bits int, r Rounding) {
	for d := range deepest + 1 {
		if l[0][d] != math.Ldexp(1, -d) || l[2][d] != -math.Ldexp(1, -d) {
			return d - 1, l.rounding(d)
		}
	}
	return deepest, NoRounding
}

// rounding tells how 1, 1.5, -1 and -1.5 halves of the last place d-1 are rounded.
func (l *ladder) rounding(d int) Rounding {
	var got [4]float64
	for v := range got {
		got[v] = math.Ldexp(l[v][d], d-1)
	}
	for r, want := range map[Rounding][4]float64{
		TowardZero: {0, 0, 0, 0}, NearestEven: {0, 1, 0, -1}, NearestAway: {1, 1, -1, -1}, Down: {0, 0, -1, -1}, Up: {1, 1, 0, 0},
	} {
		if got == want {
			return r
		}
	}
	return OtherRounding
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
		last.lost[which], last.bits[which], last.how[which] = bits < deepest, bits, how
	}
	return all
}

// outputProbes are one, two or four large products that do not cancel, of either sign,
// and a small one.
type outputProbes struct{}

var (
	outputCounts = []int{1, 2, 4}
	outputPlaces = []int{0, 1, 4, 5} // of large products: the first step of every known grouping
	outputSmall  = 8
	signs        = []float32{1, -1}
)

func (o *outputProbes) make(s Setup) Product {
	a, b := rows{k: s.K}, rows{k: s.K}
	for _, count := range outputCounts {
		for _, sign := range signs {
			for _, e := range sizesA {
				for _, v := range variants {
					a.add(func(row []float32) {
						for _, k := range outputPlaces[:count] {
							row[k] = sign * largeA
						}
						row[outputSmall] = v * exp2(e)
					})
				}
			}
		}
	}
	for _, e := range sizesB {
		b.add(func(row []float32) {
			for _, k := range outputPlaces {
				row[k] = largeB
			}
			row[outputSmall] = exp2(e)
		})
	}
	return Product{"output", "large products that stay, and small ones of all sizes: how many bits the result of a step has",
		a.tensor(s, "a", s.BlockA), b.tensor(s, "b", s.BlockB)}
}

// read returns for one, two and four large products how many bits below a unit are kept
// beside them, and how what is lost of the last is rounded.
func (o *outputProbes) read(c []float32, n int) (bits [3]int, how Rounding) {
	var both [2]Rounding // of positive and of negative sums
	for i, count := range outputCounts {
		for x, sign := range signs {
			var l ladder
			readLadder(&l, c, n, (i*len(signs)+x)*perA, 0, float64(sign)*float64(count)*large)
			bits[i], both[x] = l.kept()
		}
	}
	switch both {
	case [2]Rounding{Down, Up}:
		return bits, TowardZero
	case [2]Rounding{both[0], both[0]}:
		return bits, both[0]
	}
	return bits, OtherRounding
}
