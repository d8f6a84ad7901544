package power

import (
	"cmp"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
)

// ties are the elements of a narrow result whose exact results are so near a tie that a
// correct kernel may round them to the other side of it.
type ties struct {
	// step is by how much an element is off then, in units of spread, with its sign: of
	// each element of a narrow result, 0 of a float32.
	step []float64
	// below and above are the distances of a narrow result's exact one to the ties next to it.
	below, above []float64
	// near are the elements that may be, in the order of their distance in units of σ;
	// rows and cols are the same of each row and column.
	near, rows, cols [][]int
}

// newTies takes in the elements that errors of up to λσ, and those that elements have in
// common, could take to the other side.
func newTies[T gemm.Output](p *population, lambda float64) *ties {
	t := &ties{step: make([]float64, len(p.exact)), below: make([]float64, len(p.exact)), above: make([]float64, len(p.exact))}
	var near []int
	distances := make([]float64, len(p.exact))
	for i, x := range p.exact {
		right := number.From[T](x)
		if unitOf[T]() == 0 || p.sigma[i] == 0 || !number.IsFinite(number.Float64(right)) {
			continue
		}
		lo, hi := cell(right)
		t.below[i], t.above[i] = float64(x)-lo, hi-float64(x)
		distance, side := t.below[i], -1
		if t.above[i] < distance {
			distance, side = t.above[i], 1
		}
		other := number.Float64(next(right, side))
		if !number.IsFinite(other) {
			continue
		}
		t.step[i] = (other - number.Float64(right)) / p.spread[i]
		distances[i] = max(distance-p.slack(i), 0) / p.sigma[i]
		if distances[i] <= lambda {
			near = append(near, i)
		}
	}
	slices.SortStableFunc(near, func(x, y int) int { return cmp.Compare(distances[x], distances[y]) })
	t.near = [][]int{near}
	t.rows = grouped(near, p.m, func(at int) int { return at / p.n })
	t.cols = grouped(near, p.n, func(at int) int { return at % p.n })
	return t
}

// slack is what element at may be off by for reasons that other elements share, and for
// the rounding of the exact result.
func (p *population) slack(at int) float64 {
	return u*math.Abs(float64(p.exact[at])) + float64(p.shared[at]*p.spread[at])
}

// grouped cuts elements into n groups, and keeps their order.
func grouped(elements []int, n int, group func(at int) int) [][]int {
	groups := make([][]int, n)
	for _, at := range elements {
		g := group(at)
		groups[g] = append(groups[g], at)
	}
	return groups
}

// allowed is the most that Σwf comes to if all elements up to some distance from a tie
// are on the other side of it, be that distance what it may.
func (t *ties) allowed(near []int, weight func(at int) float64) (most float64) {
	sum := 0.0
	for _, at := range near {
		sum += float64(weight(at) * t.step[at])
		most = max(most, math.Abs(sum))
	}
	return most
}
