package fault

import (
	"context"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/tensor"
)

const (
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

// newSample looks at elements of got.
func newSample[T gemm.Output](ctx context.Context, p *problem, got []T, o Options) (*sample, error) {
	s := &sample{p: p}
	places := explain.Places(p.m, p.n, max(leastSampled, mostProducts/p.k), o.Wrong)
	s.elements = make([]element, len(places))
	var err error
	if s.coefficient, err = p.relative(ctx, p.Accumulation); err != nil {
		return nil, err
	}
	s.aligned = p.Accumulation.Kernel.Model != oracle.Model{}
	s.cut()
	var m meter.Meter
	m.Start(ctx, o.Progress, "explain", int64(len(places)))
	exact, bound, err := exactAt[T](ctx, p, places, o.Workers)
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(places))
	parallel.For(len(places), 8, o.Workers, func(lo, hi int) {
		for n := lo; n < hi; n++ {
			e := &s.elements[n]
			e.i, e.j, e.got = places[n]/p.n, places[n]%p.n, number.Float64(got[places[n]])
			if p.Bits {
				errs[n] = demanded[T](ctx, p, e)
			} else {
				e.want = number.Float64(exact[n])
				e.wrong = e.got != e.want && !(e.got != e.got && e.want != e.want) && !(math.Abs(e.got-e.want) <= bound[n]) && !math.IsInf(bound[n], 1)
			}
			if errs[n] != nil {
				return
			}
			if e.distance = math.Abs(e.got - e.want); e.distance != e.distance {
				e.distance = math.Inf(1)
			}
			s.sum(e)
			if p.Together {
				e.wrong = e.distance > float64(0x1p-23*e.all.total)+p.out.place(e.want)
			}
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

// exactAt returns exact elements and their bounds, and nothing where bits are demanded.
func exactAt[T gemm.Output](ctx context.Context, p *problem, places []int, workers int) (exact []T, bound []float64, err error) {
	if p.Bits {
		return nil, nil, nil
	}
	var old []T
	for _, x := range p.Old {
		old = append(old, number.From[T](number.Canonical(x)))
	}
	exact, bound = make([]T, len(places)), make([]float64, len(places))
	o := oracle.Options{Bias: p.Bias, Accumulate: p.Old != nil, Workers: workers}
	return exact, bound, oracle.ExactAt(ctx, exact, bound, old, places, p.A, p.B, p.Accumulation, o)
}

// demanded finds the bits that an element should have, and whether it has them.
func demanded[T gemm.Output](ctx context.Context, p *problem, e *element) error {
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
	var want [1]T
	if p.Old != nil {
		o.Accumulate = true
		want[0] = number.From[T](number.Canonical(p.Old[e.i*p.n+e.j]))
	}
	if p.hasModel() {
		err = oracle.Predict(ctx, want[:], nil, a, b, p.Kernel, o)
	} else {
		err = gemm.Multiply(ctx, want[:], a, b, o)
	}
	e.want = number.Float64(want[0])
	e.wrong = math.Float32bits(float32(e.want)) != math.Float32bits(float32(e.got)) && !(e.got != e.got && e.want != e.want)
	return err
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
