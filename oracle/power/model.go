package power

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// How much larger than those of a model the errors of its kernel may be, since it may add in
// another order: on the whole, and in one element than the largest.
const (
	modelSize    = 1.5
	modelElement = 4
)

// modelOrders are the orders of the products of a block in which a model's sums are
// predicted: as they come, backwards, and shuffled.
var modelOrders = []func(n int) []int{
	nil,
	func(n int) []int {
		order := make([]int, n)
		for i := range order {
			order[i] = n - 1 - i
		}
		return order
	},
	func(n int) []int { return rand.New(rand.NewPCG(uint64(n), 0x6d6f64656c)).Perm(n) },
}

// reordered is t with the products of each block of K in another order.
func (p *population) reordered(t *tensor.Tensor, order func(n int) []int) *tensor.Tensor {
	if order == nil {
		return t
	}
	x := *t
	x.Codes = make([]byte, 0, len(t.Codes))
	rows, _ := t.Dims()
	for i := range rows {
		row := t.Row(i)
		for lo := 0; lo < p.k; lo += p.block {
			for _, k := range order(min(p.block, p.k-lo)) {
				x.Codes = append(x.Codes, row[lo+k])
			}
		}
	}
	return &x
}

// sizes are the errors of a result in units of σ, without their signs.
func sizes[T gemm.Output](p *population, got []T) []float64 {
	f := make([]float64, len(got))
	for i, x := range got {
		if off := math.Abs(number.Float64(x) - p.right[i]); p.sigma[i] > 0 && number.IsFinite(off) {
			f[i] = off / p.sigma[i]
		}
	}
	return f
}

// model is what is known of the errors of a model's sums.
type model struct {
	*population
	name   string
	orders [][]float64 // sizes of the errors in each order
	most   float64     // the largest of all
	least  []float64   // what the sum loses if it is cut once
	unit   float64     // the same of a sum of 1
	narrow float64     // the unit roundoff of C, where that is narrow
}

func newModel[T gemm.Output](ctx context.Context, p *population, old []T, o *Options) (*model, error) {
	kernel := o.Accumulation.Kernel
	m := &model{population: p, name: kernel.Model.Name, least: make([]float64, len(p.exact))}
	for _, order := range modelOrders {
		c := slices.Clone(old)
		if c == nil {
			c = make([]T, len(p.exact))
		}
		err := oracle.Predict(ctx, c, nil, p.reordered(p.a, order), p.reordered(p.b, order), kernel,
			oracle.Options{Bias: o.Bias, Accumulate: old != nil, Workers: o.Workers, Progress: o.Progress})
		if err != nil {
			return nil, fmt.Errorf("power: %w", err)
		}
		f := sizes(p, c)
		m.orders = append(m.orders, f)
		m.most = max(m.most, slices.Max(append(f, 0)))
	}
	m.narrow = unitOf[T]()
	unit := max(math.Ldexp(1, -kernel.Model.F), u)
	for i, x := range p.exact {
		if p.sigma[i] > 0 {
			m.least[i] = unit * math.Abs(float64(x)) / p.sigma[i]
		}
	}
	m.unit = unit
	return m, nil
}

// modelScores tests a result for errors that are larger than those of a model: of one
// element, of all and of parts of C.
func modelScores[T gemm.Output](m *model, got []T) *scores {
	s := &scores{p: m.population}
	f := sizes(m.population, got)
	ratio, at, squares := 0.0, 0, 0.0
	for i, x := range f {
		if !number.IsFinite(number.Float64(got[i])) || !number.IsFinite(float64(m.exact[i])) {
			s.skipped++
			continue
		}
		s.elements++
		squares += float64(x * x)
		// In a narrow type an error is of whole units in the last place.
		if r := x / max(m.most, float64(m.least[i]*(1+2*m.narrow/m.unit))); x > 0 && r > ratio {
			ratio, at = r, i
		}
	}
	s.spread = math.Sqrt(squares / float64(max(s.elements, 1)))
	chance := 1.0
	if ratio > modelElement {
		chance = 0
	}
	s.tests = []family{{name: "elements", n: s.elements, chance: chance, measured: true, lambda: []float64{ratio}, where: func(int) string {
		return fmt.Sprintf("element (%d, %d) is off by %.3g times the most of the sums of %s", at/max(m.n, 1), at%max(m.n, 1), ratio, m.name)
	}}}
	regions, _ := m.regions()
	regions = slices.Insert(regions, 0, region{0, 0, m.m, m.n})
	lambda, times := make([]float64, len(regions)), make([]float64, len(regions))
	q := m.newSquarer()
	for n, r := range regions {
		lambda[n], times[n] = m.region(r, f, q)
	}
	s.tests = append(s.tests,
		family{name: "size", n: 1, chance: -1, lambda: lambda[:1], where: func(int) string {
			return fmt.Sprintf("errors are %.3g times those of the sums of %s", times[0], m.name)
		}},
		family{name: "size in parts of C", n: len(regions) - 1, chance: -1, lambda: lambda[1:], where: func(i int) string {
			r := regions[1+i]
			return fmt.Sprintf("errors of the %dx%d at (%d, %d) are %.3g times those of the sums of %s", r.height, r.width, r.row, r.col, times[1+i], m.name)
		}})
	return s
}

// region returns by how many standard deviations the errors of a region are larger than
// those of a model may be, and how many times as large they are.
func (m *model) region(r region, f []float64, q *squarer) (lambda, times float64) {
	sum := func(f []float64) (all, squares float64) {
		for i := r.row; i < r.row+r.height; i++ {
			for j := r.col; j < r.col+r.width; j++ {
				at := i*m.n + j
				all += f[at]
				q.add(at, f[at])
			}
		}
		return all, q.squares()
	}
	got, noise := sum(f)
	if got == 0 {
		return 0, 0
	}
	most, of := 0.0, 0.0
	for _, order := range m.orders {
		if all, squares := sum(order); all > most {
			most, of = all, squares
		}
	}
	least, _ := sum(m.least)
	allowed := max(modelSize*most, least)
	return max(got-allowed, 0) / math.Sqrt(noise+float64(modelSize*modelSize*of)), got / max(most, least)
}

// modelSights says what would have been seen.
func (m *model) sights(s *scores, rate float64) []Sight {
	whole := region{0, 0, m.m, m.n}
	q := m.newSquarer()
	least := math.Inf(1)
	for x := 1.0; x < 1e6; x *= 1.1 {
		larger := make([]float64, len(m.orders[0]))
		for i, f := range m.orders[0] {
			larger[i] = x * f
		}
		if lambda, _ := m.region(whole, larger, q); lambda > limit(1, rate) {
			least = x
			break
		}
	}
	sight := Sight{Fault: "sums that lose more bits", Unit: "the errors of the sums of " + m.name}
	if !math.IsInf(least, 1) {
		sight.Least = oracle.Number(least)
	}
	return []Sight{sight}
}
