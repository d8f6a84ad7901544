package power

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
)

// scores are the statistics of one result.
type scores struct {
	p                 *population
	tests             []family
	deviations        []float64 // f of each element, 0 where it is left out
	elements, skipped int
	spread            float64
}

// family is one test: its statistics, or the largest of very many.
type family struct {
	name   string
	n      int       // statistics
	lambda []float64 // of each statistic, or only the largest
	where  func(i int) string
	chance float64 // a probability in place of λ, where not negative
	// measured says that the limit is what was measured of correct kernels, and lambda a ratio.
	measured bool
	void     bool
	many     bool // lambda has only the largest: a control that is suspicious voids the whole
	// again is the statistic of the largest λ of other deviations, where many.
	again func(f []float64) float64

	raw, allowed []float64 // λ before a control, and what controls allow
}

// largest returns the largest λ of a family, and which statistic has it.
func (f *family) largest() (lambda float64, at int) {
	for i, x := range f.lambda {
		if x > lambda {
			lambda, at = x, i
		}
	}
	return lambda, at
}

// probability bounds that of such statistics of a correct kernel.
func (f *family) probability() float64 {
	if f.void {
		return 1
	}
	if f.chance >= 0 {
		return f.chance
	}
	lambda, _ := f.largest()
	return tail(f.n, lambda)
}

// newScores computes all statistics of got.
func newScores[T gemm.Output](ctx context.Context, p *population, got []T, o *Options) (*scores, error) {
	s := &scores{p: p, deviations: make([]float64, p.m*p.n)}
	s.tests = append(s.tests, elements(s, got), variance(p, got))
	if unitOf[T]() > 0 {
		s.tests = append(s.tests, sides(p, got))
	}
	s.tests = append(s.tests, p.whole(s.deviations), p.parts(s.deviations))
	along, err := p.alongK(ctx, s.deviations, o)
	if err != nil {
		return nil, err
	}
	s.tests = append(s.tests, along...)
	flushed, err := p.subnormals(ctx, s.deviations, o)
	if err != nil {
		return nil, err
	}
	s.tests = append(s.tests, flushed)
	return s, nil
}

// elements tests elements one by one, and notes their deviations.
func elements[T gemm.Output](s *scores, got []T) family {
	p := s.p
	most, at, squares := 0.0, 0, 0.0
	for i, x := range got {
		g, want := number.Float64(x), float64(p.exact[i])
		if !number.IsFinite(g) || !number.IsFinite(want) {
			s.skipped++
			continue
		}
		s.elements++
		if p.sigma[i] == 0 {
			continue
		}
		err := (g - want) / p.spread[i]
		squares += float64(err * err)
		if number.IsFinite(p.right[i]) { // else it is next to the end of a narrow type's range
			s.deviations[i] = (g - p.right[i]) / p.spread[i]
		}
		lambda := max(distance(x, want)-u*math.Abs(want), 0) / p.sigma[i]
		if lambda > most {
			most, at = lambda, i
		}
	}
	s.spread = math.Sqrt(squares / float64(max(s.elements, 1)))
	return family{name: "elements", n: s.elements, lambda: []float64{most}, chance: -1, many: true, where: func(int) string {
		return fmt.Sprintf("element (%d, %d)", at/max(p.n, 1), at%max(p.n, 1))
	}}
}

// variance tests the sum of the squares of the errors of one element of each class.
func variance[T gemm.Output](p *population, got []T) family {
	squares, n := 0.0, 0
	for _, i := range p.first {
		want := float64(p.exact[i])
		if !number.IsFinite(number.Float64(got[i])) || p.sigma[i] == 0 {
			continue
		}
		lambda := max(distance(got[i], want)-p.slack(i), 0) / p.sigma[i]
		squares += float64(lambda * lambda)
		n++
	}
	chance, x := 1.0, squares/float64(max(n, 1))
	if x > 1 {
		chance = math.Exp(-float64(n) / 2 * (x - 1 - math.Log(x)))
	}
	return family{name: "variance", n: 1, chance: chance, many: true, lambda: []float64{0}, where: func(int) string {
		return fmt.Sprintf("%.3g times the most that float32 has in any order", x)
	}}
}

// distance is how far the number that was rounded to x is from want, at least.
func distance[T gemm.Output](x T, want float64) float64 {
	if unitOf[T]() == 0 {
		return math.Abs(number.Float64(x) - want)
	}
	lo, hi := cell(x)
	return max(lo-want, want-hi, 0)
}

// sides tests how many elements of a narrow result, one of each class, are not the exact
// one rounded.
func sides[T gemm.Output](p *population, got []T) family {
	wrong, expected := 0, 0.0
	for _, i := range p.first {
		want, right := float64(p.exact[i]), number.From[T](p.exact[i])
		if !number.IsFinite(number.Float64(got[i])) || !number.IsFinite(p.right[i]) || p.sigma[i] == 0 {
			continue
		}
		lo, hi := cell(right)
		slack := p.slack(i)
		d := max(min(want-lo, hi-want)-slack, 0) / p.sigma[i]
		expected += min(1, 2*math.Exp(-d*d/2))
		if distance(got[i], want) > slack {
			wrong++
		}
	}
	chance := 1.0
	if c := float64(wrong); c > expected {
		chance = math.Exp(c - expected - c*math.Log(c/expected))
	}
	return family{name: "wrong sides", n: 1, chance: chance, many: true, lambda: []float64{0}, where: func(int) string {
		return fmt.Sprintf("%d elements are not the exact one rounded, at most %.0f are expected", wrong, expected)
	}}
}

// normalized is |Σwf| less what is allowed over its norm: 0 of nothing.
func normalized(sum, allowed, squares float64) float64 {
	if !(squares > 0) {
		return 0
	}
	return max(math.Abs(sum)-allowed, 0) / math.Sqrt(squares)
}

// signAt is the sign of the exact result.
func (p *population) signAt(i int) float64 {
	switch c := p.exact[i]; {
	case c > 0:
		return 1
	case c < 0:
		return -1
	}
	return 0
}

// whole tests all of C for a bias, and for one toward zero or away from it.
func (p *population) whole(f []float64) family {
	var sum, shrunk, shared float64
	q := p.newSquarer()
	for i, x := range f {
		sum += x
		shrunk += x * p.signAt(i)
		shared += p.shared[i]
		q.add(i, x)
	}
	return family{name: "all of C", n: 2, chance: -1, lambda: p.biases(sum, shrunk, shared, q.squares(), p.ties.near[0]),
		where: func(i int) string {
			if i == 0 {
				return "a bias " + direction(sum, "upward", "downward")
			}
			return "a bias " + direction(shrunk, "away from zero", "toward zero")
		}}
}

// biases are the statistics of two sums, of which the second is one times the signs of
// exact results.
func (p *population) biases(sum, shrunk, shared, squares float64, near []int) []float64 {
	if squares == 0 {
		return []float64{0, 0}
	}
	return []float64{
		normalized(sum, shared+p.ties.allowed(near, func(int) float64 { return 1 }), squares),
		normalized(shrunk, shared+p.ties.allowed(near, p.signAt), squares),
	}
}

func direction(x float64, positive, negative string) string {
	if x > 0 {
		return positive
	}
	return negative
}

// region is a part of C.
type region struct{ row, col, height, width int }

// regions are rows, columns and square tiles, and the elements in them that are near ties.
func (p *population) regions() (all []region, near [][]int) {
	for i := range p.m {
		all = append(all, region{i, 0, 1, p.n})
	}
	for j := range p.n {
		all = append(all, region{0, j, p.m, 1})
	}
	near = slices.Concat(p.ties.rows, p.ties.cols)
	for _, side := range [...]int{16, 64, 128} {
		for i := 0; i < p.m; i += side {
			for j := 0; j < p.n; j += side {
				all = append(all, region{i, j, min(side, p.m-i), min(side, p.n-j)})
			}
		}
		across := (p.n + side - 1) / side
		near = append(near, grouped(p.ties.near[0], (p.m+side-1)/side*across, func(at int) int {
			return at/p.n/side*across + at%p.n/side
		})...)
	}
	return all, near
}

// parts tests every row, column and tile as whole tests all.
func (p *population) parts(f []float64) family {
	regions, near := p.regions()
	lambda := make([]float64, 0, 2*len(regions))
	q := p.newSquarer()
	for at, r := range regions {
		near := near[at]
		var sum, shrunk, shared float64
		for i := r.row; i < r.row+r.height; i++ {
			for j := r.col; j < r.col+r.width; j++ {
				at := i*p.n + j
				x := f[at]
				sum += x
				shrunk += x * p.signAt(at)
				shared += p.shared[at]
				q.add(at, x)
			}
		}
		lambda = append(lambda, p.biases(sum, shrunk, shared, q.squares(), near)...)
	}
	return family{name: "parts of C", n: len(lambda), lambda: lambda, chance: -1, where: func(i int) string {
		r := regions[i/2]
		if r.height == p.m && r.width == p.n {
			return "a bias in all of C"
		}
		return fmt.Sprintf("a bias in the %dx%d at (%d, %d)", r.height, r.width, r.row, r.col)
	}}
}

// suspicious reports whether any test is, before controls.
func (s *scores) suspicious(rate float64) bool {
	for i := range s.tests {
		if s.tests[i].probability() <= rate/mostTests {
			return true
		}
	}
	return false
}

// voided is the rate at which a control voids a test of very many statistics.
const voided = 1e-3

// allowance is how many times what a control shows is allowed.
const allowance = 2

// control allows what a correct kernel shows.
func (s *scores) control(known *scores) {
	for i := range s.tests {
		f, c := &s.tests[i], &known.tests[i]
		allowed := c.lambda
		if f.many {
			f.void = f.void || c.probability() <= voided
			allowed = make([]float64, len(f.lambda))
			if f.again != nil {
				allowed[0] = f.again(known.deviations)
			}
		}
		if f.raw == nil {
			f.raw, f.allowed = f.lambda, make([]float64, len(f.lambda))
			f.lambda = make([]float64, len(f.raw))
		}
		for j := range f.lambda {
			f.allowed[j] = max(f.allowed[j], allowance*allowed[j])
			f.lambda[j] = max(f.raw[j]-f.allowed[j], 0)
		}
	}
}

// result says what the scores are.
func (s *scores) result(rate float64) *Result {
	r := &Result{Rate: oracle.Number(rate), P: 1, Elements: s.elements, Left: s.skipped, Distinct: len(s.p.first), Spread: oracle.Number(s.spread)}
	for i := range s.tests {
		f := &s.tests[i]
		lambda, at := f.largest()
		t := Test{Name: f.name, Statistics: f.n, Score: oracle.Number(lambda), Limit: oracle.Number(limit(f.n, rate)),
			P: oracle.Number(f.probability()), Void: f.void}
		switch {
		case f.measured:
			t.Score, t.Limit, t.Measured = oracle.Number(lambda), modelElement, true
		case f.chance >= 0:
			t.Score = oracle.Number(math.Sqrt(2 * (math.Ln2 - math.Log(max(f.chance, math.SmallestNonzeroFloat64)))))
		}
		if f.where != nil && float64(t.P) < 1 {
			t.Where = f.where(at)
		}
		t.Alarm = float64(t.P) <= rate/mostTests
		r.Alarm = r.Alarm || t.Alarm
		r.P = min(r.P, mostTests*t.P)
		r.Tests = append(r.Tests, t)
	}
	return r
}
