package fault

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

const (
	mostWrong = 512 // wrong elements that are looked at
	mostRight = 384 // other elements
	// mostProducts is the number of products that a sample may have; it is smaller where
	// K is very large, but not below leastSampled elements.
	mostProducts = 1 << 25
	leastSampled = 128
)

// element is an element of C that is looked at.
type element struct {
	i, j      int
	got, want float64 // want is that of a correct kernel, rounded to the type of C
	wrong     bool
	distance  float64 // of got and want; infinite where one of them is not finite

	// What follows belongs to the right product. Its blocks of K: sums of products of
	// codes, and of their magnitudes.
	sums, totals []float64
	// Sums of scaled products, under outer scales too, between the sample's cuts, from 0 up to each, and from each
	// to K.
	parts, upTo, from []magnitude
	all               magnitude // of the product, without addends
}

// magnitude is a sum, and that of its terms' magnitudes.
type magnitude struct{ value, total float64 }

func (m magnitude) plus(o magnitude) magnitude {
	return magnitude{m.value + o.value, m.total + o.total}
}

func (m magnitude) times(factor float64) magnitude {
	return magnitude{float64(m.value * factor), float64(m.total * math.Abs(factor))}
}

// sample is what is looked at of a result.
type sample struct {
	p        *problem
	elements []element // wrong ones first
	wrong    int
	cuts     []int // places in K, ascending, from 0 to K

	// coefficient is the relative error, in units of the sum of magnitudes, that a correct
	// kernel may make.
	coefficient float64
	// aligned says that subnormal codes count as tensor cores align them.
	aligned bool
}

// choose returns places of C to look at: such as are said to be wrong, and others. The
// latter are in the rows and in the columns of the former, and anywhere.
func (p *problem) choose(wrong []int) (places []int) {
	budget := max(leastSampled, mostProducts/p.k)
	size := p.m * p.n
	if size <= min(budget, mostWrong+mostRight) {
		for at := range size {
			places = append(places, at)
		}
		return places
	}
	most := min(mostWrong, budget/2)
	places = p.spread(wrong, most)
	others := min(mostRight, budget/2)
	if len(places) == 0 {
		others += most
	}
	chosen := len(places)
	add := func(i, j int) { places = append(places, i*p.n+j) }
	for n := range others {
		// Two irrational numbers fill a square evenly (Roberts' R2 sequence).
		i := int(float64(p.m) * frac(0.5+float64(float64(n)*0.7548776662466927)))
		j := int(float64(p.n) * frac(0.5+float64(float64(n)*0.5698402909980532)))
		near := 0
		if chosen > 0 {
			near = places[n%chosen]
		}
		switch {
		case n == 0:
			add(0, 0)
		case n == 1:
			add(p.m-1, p.n-1)
		case chosen > 0 && n%3 == 0:
			add(near/p.n, j)
		case chosen > 0 && n%3 == 1:
			add(i, near%p.n)
		default:
			add(i, j)
		}
	}
	places = append(places, p.around(wrong)...)
	slices.Sort(places)
	return slices.Compact(places)
}

// around returns places just outside the rows and the columns of those that are wrong, so
// that it is known where these end.
func (p *problem) around(wrong []int) (places []int) {
	if len(wrong) == 0 {
		return nil
	}
	row, col := func(at int) int { return at / p.n }, func(at int) int { return at % p.n }
	lines := func(of func(at int) int) (before, after int) {
		before, after = of(wrong[0]), of(wrong[0])
		for _, at := range wrong {
			before, after = min(before, of(at)), max(after, of(at))
		}
		return before - 1, after + 1
	}
	above, below := lines(row)
	left, right := lines(col)
	add := func(i, j int) {
		if i >= 0 && i < p.m && j >= 0 && j < p.n {
			places = append(places, i*p.n+j)
		}
	}
	const each = 8
	for n := range each {
		at := wrong[n*len(wrong)/each]
		add(above, col(at))
		add(below, col(at))
		add(row(at), left)
		add(row(at), right)
	}
	return places
}

func frac(x float64) float64 { return x - math.Floor(x) }

// spread returns up to n of the given places, of as many rows and columns as it can.
func (p *problem) spread(all []int, n int) []int {
	if len(all) <= n {
		return slices.Clone(all)
	}
	all = slices.Clone(all)
	slices.Sort(all)
	var rows [][]int
	for from := 0; from < len(all); {
		to := from + sort.Search(len(all)-from, func(d int) bool { return all[from+d]/p.n > all[from]/p.n })
		rows = append(rows, all[from:to])
		from = to
	}
	taken := min(len(rows), n)
	each := (n + taken - 1) / taken
	var places []int
	for r := range taken {
		row := rows[r*len(rows)/taken]
		start := frac(float64(float64(r) * 0.6180339887498949))
		for e := range min(each, len(row)) {
			places = append(places, row[int(float64(len(row))*frac(start+float64(e)/float64(each)))])
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// newSample looks at elements of got.
func newSample[T gemm.Output](ctx context.Context, p *problem, got []T, o Options) (*sample, error) {
	s := &sample{p: p}
	places := p.choose(o.Wrong)
	s.elements = make([]element, len(places))
	var err error
	if s.coefficient, err = p.relative(ctx, p.Accumulation); err != nil {
		return nil, err
	}
	s.aligned = p.Accumulation.Kernel.Model != oracle.Model{}
	s.cut()
	var m meter.Meter
	m.Start(ctx, o.Progress, "explain", int64(len(places)))
	errs := make([]error, len(places))
	parallel.For(len(places), 8, o.Workers, func(lo, hi int) {
		for n := lo; n < hi; n++ {
			e := &s.elements[n]
			e.i, e.j = places[n]/p.n, places[n]%p.n
			if errs[n] = judge(ctx, p, e, got[places[n]]); errs[n] != nil {
				return
			}
			s.sum(e)
			if errs[n] = m.Add(1); errs[n] != nil {
				return
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	right := slices.Clone(s.elements)
	s.elements = slices.DeleteFunc(s.elements, func(e element) bool { return !e.wrong })
	s.wrong = len(s.elements)
	s.elements = append(s.elements, slices.DeleteFunc(right, func(e element) bool { return e.wrong })...)
	return s, nil
}

// judge finds what an element should be, and whether it is wrong.
func judge[T gemm.Output](ctx context.Context, p *problem, e *element, got T) error {
	a, err := p.a.matrix(e.i)
	if err != nil {
		return err
	}
	b, err := p.b.matrix(e.j)
	if err != nil {
		return err
	}
	o := oracle.Options{Workers: 1}
	if p.Bias != nil {
		o.Bias = p.Bias[e.j : e.j+1]
	}
	var want, old [1]T
	if p.Old != nil {
		o.Accumulate = true
		old[0] = halves.Round[T](p.Old[e.i*p.n+e.j])
	}
	want = old
	e.got = float64(halves.Value(got))
	if p.Bits {
		if p.hasModel() {
			err = oracle.Predict(ctx, want[:], nil, a, b, p.Kernel, o)
		} else {
			err = gemm.Multiply(ctx, want[:], a, b, o)
		}
		if err != nil {
			return err
		}
		e.want = float64(halves.Value(want[0]))
		e.wrong = math.Float32bits(halves.Value(want[0])) != math.Float32bits(halves.Value(got)) && !(e.got != e.got && e.want != e.want)
	} else {
		var bound [1]float64
		if err := oracle.Exact(ctx, want[:], a, b, o); err != nil {
			return err
		}
		if err := oracle.Bound(ctx, bound[:], old[:], a, b, p.Accumulation, o); err != nil {
			return err
		}
		e.want = float64(halves.Value(want[0]))
		e.wrong = e.got != e.want && !(e.got != e.got && e.want != e.want) && !(math.Abs(e.got-e.want) <= bound[0]) && !math.IsInf(bound[0], 1)
	}
	e.distance = math.Abs(e.got - e.want)
	if e.distance != e.distance {
		e.distance = math.Inf(1)
	}
	return nil
}

// relative returns the bound of a product of ones, of which as many are added as there
// are products in whole blocks of K, for each of them. Any sum of as many products in as
// many blocks has no larger error, relative to their magnitudes.
func (p *problem) relative(ctx context.Context, acc oracle.Accumulation) (float64, error) {
	k, block := p.k, 0
	if p.block < p.k {
		k, block = roundUp(p.k, p.block), p.block
	}
	ones := func(t *tensor.Tensor) *tensor.Tensor {
		x := &tensor.Tensor{Name: t.Name, Format: t.Format, Shape: []int{1, k}, Block: tensor.Block{Rows: 1, Cols: block}, Codes: make([]byte, k)}
		one := codeOfOne(t.Format)
		for i := range x.Codes {
			x.Codes[i] = one
		}
		_, n := x.Grid()
		for range n {
			x.Scales = append(x.Scales, 1)
		}
		if !t.Outer.None() {
			x.Outer = tensor.Outer{Scales: []float32{1}, Divide: t.Outer.Divide}
		}
		return x
	}
	var bound [1]float64
	var old []float32
	o := oracle.Options{Workers: 1}
	if p.Bias != nil {
		o.Bias = []float32{0}
	}
	if p.Old != nil {
		o.Accumulate, old = true, []float32{0}
	}
	if err := oracle.Bound(ctx, bound[:], old, ones(p.A), ones(p.B), acc, o); err != nil {
		return 0, err
	}
	return bound[0] / float64(k), nil
}

// cut chooses where sums are cut, so that ranges of K that are tried begin and end there.
func (s *sample) cut() {
	k, step := s.p.k, 16
	for k/step > mostRanges {
		step *= 2
	}
	for at := 0; at < k; at += step {
		s.cuts = append(s.cuts, at)
	}
	if k/s.p.block <= mostRanges {
		for at := 0; at < k; at += s.p.block {
			s.cuts = append(s.cuts, at)
		}
	}
	s.cuts = append(s.cuts, k)
	slices.Sort(s.cuts)
	s.cuts = slices.Compact(s.cuts)
}

// sum fills in the sums of an element of the right product.
func (s *sample) sum(e *element) {
	p := s.p
	x, y := p.A.Row(e.i), p.B.Row(e.j)
	u, v := values(p.A.Format), values(p.B.Format)
	mu, mv := magnitudes(p.A.Format, s.aligned), magnitudes(p.B.Format, s.aligned)
	blocks := (p.k + p.block - 1) / p.block
	e.sums, e.totals = make([]float64, blocks), make([]float64, blocks)
	last := len(s.cuts) - 1
	parts := make([]magnitude, 3*(last+1))
	e.parts, e.upTo, e.from = parts[:last], parts[last:2*last+1], parts[2*last+1:]
	outer := p.a.factor(e.i) * p.b.factor(e.j)
	for c := range last {
		for lo, end := s.cuts[c], s.cuts[c+1]; lo < end; {
			q := lo / p.block
			hi := min(end, (q+1)*p.block)
			sum, total := dot(x[lo:hi], y[lo:hi], u, v, mu, mv)
			e.sums[q] += sum
			e.totals[q] += total
			scale := float64(p.a.rightScale(e.i, lo/p.a.width)) * float64(p.b.rightScale(e.j, lo/p.b.width)) * outer
			e.parts[c] = e.parts[c].plus(magnitude{sum, total}.times(scale))
			lo = hi
		}
		e.upTo[c+1] = e.upTo[c].plus(e.parts[c])
	}
	for c := last - 1; c >= 0; c-- {
		e.from[c] = e.parts[c].plus(e.from[c+1])
	}
	e.all = e.upTo[last]
}

// between returns the sum of scaled products between two cuts.
func (e *element) between(from, to int) (sum magnitude) {
	for _, part := range e.parts[from:to] {
		sum = sum.plus(part)
	}
	return sum
}

// dot returns the sum of products of codes, and that of their magnitudes.
func dot(x, y []byte, u, v, mu, mv *[256]float64) (sum, total float64) {
	y = y[:len(x)]
	for i, c := range x {
		d := y[i]
		sum += float64(u[c] * v[d])
		total += float64(mu[c] * mv[d])
	}
	return sum, total
}
