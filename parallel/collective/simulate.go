package collective

import (
	"context"
	"math"

	"github.com/octavo-fp8/octavo/internal/meter"
)

// Simulation is the sum alone of a reduction, over any number of ranks: of R operands of
// n elements it holds about log2 R at a time, not R. It is the part of an all-reduce
// that ends at rank 0, as [Rank.AllReduceSlices] would sum it, with the Cols, Wire,
// Order, Rounding, Result and Amax of the Exchange. Nothing is sent.
type Simulation struct {
	Exchange
	Ranks, Elements int

	// Operand writes a rank's operand to dst, the same whenever it is asked. It is
	// asked in no particular order, twice with AmaxShared.
	Operand func(dst []float32, rank int)
}

// SumError is how far a sum is from the exact one, element by element.
type SumError struct {
	// RMS is the root of the mean square error over that of the exact sums.
	RMS float64

	// Max is the largest error over the sum of magnitudes of the same element: at most
	// about depth times 2^-24 in FP32.
	Max float64

	// Bias is the mean of errors in the direction of the exact sum over the mean
	// magnitude of exact sums: negative where sums come out too small, as where small
	// operands are lost beside large partial sums.
	Bias float64

	// Changed is the share of elements that are not the exact sum rounded to float32.
	Changed float64

	NonFinite int // elements whose sum is NaN or infinite, which count in nothing above
}

// Run returns the sums, what every rank would have of them, and their error. The error
// is [ErrInput], or that of ctx.
func (s *Simulation) Run(ctx context.Context) ([]float32, SumError, error) {
	if err := s.check(s.Ranks, s.Elements); err != nil {
		return nil, SumError{}, err
	}
	if s.Elements < 1 || s.Operand == nil || s.Amax == AmaxLate {
		return nil, SumError{}, inputError("%q: a simulation of %d elements with amaxes %v: it needs at least 1, a function Operand, and amaxes that are own or shared",
			s.Name, s.Elements, s.Amax)
	}
	exact, magnitudes := make([]exactSum, s.Elements), make([]float64, s.Elements)
	e := evaluation{
		partReduction: partReduction{ctx: ctx, x: &s.Exchange, n: s.Elements, amax: s.amax()},
		leaf: func(dst []float32, r int) {
			s.Operand(dst, r)
			for i, v := range dst {
				exact[i].add(v)
				magnitudes[i] += math.Abs(float64(v))
			}
		},
	}
	b := sumBuilder{where: identity(s.Ranks)}
	p, err := e.run(b.sum(s.Order, s.Ranks, 0), b.list, s.Ranks)
	if err != nil {
		return nil, SumError{}, err
	}
	sum := make([]float32, s.Elements)
	p.decode(sum)
	return sum, errorOf(sum, exact, magnitudes), nil
}

// amax returns the amaxes that ranks share, if they do.
func (s *Simulation) amax() []float32 {
	if s.Amax == AmaxOwn {
		return nil
	}
	amax, values := s.newAmaxes(s.Elements), make([]float32, s.Elements)
	for r := range s.Ranks {
		s.Operand(values, r)
		s.raise(amax, values)
	}
	return amax
}

func errorOf(sum []float32, exact []exactSum, magnitudes []float64) (e SumError) {
	var squares, errors, bias, size float64
	counted := 0
	for i, v := range sum {
		want := exact[i].float64()
		if math.IsNaN(want) || isNonFinite(v) {
			e.NonFinite++
			continue
		}
		counted++
		d := float64(v) - want
		squares += float64(want * want)
		errors += float64(d * d)
		size += math.Abs(want)
		if bias += d; want < 0 {
			bias -= 2 * d
		}
		if d != 0 {
			e.Max = max(e.Max, math.Abs(d)/magnitudes[i])
		}
		if v != float32(want) {
			e.Changed++
		}
	}
	if squares > 0 {
		e.RMS, e.Bias = math.Sqrt(errors/squares), bias/size
	}
	if counted > 0 {
		e.Changed /= float64(counted)
	}
	return e
}

// evaluation computes the sum of one part as the tree that its additions are, depth
// first: of R operands it holds two where they are added in turn, and log2 R in a tree.
type evaluation struct {
	partReduction
	leaf    func(dst []float32, rank int)
	traffic Traffic // nil: not counted
	free    [][]float32
}

// node is an operand, or the addition of two nodes.
type node struct {
	at   int // rank
	step int // which addition; -1: an operand
	a, b *node
}

// tree returns the tree of additions.
func tree(list []addition, ranks, root int) *node {
	slots := make([]*node, ranks)
	for r := range slots {
		slots[r] = &node{at: r, step: -1}
	}
	for i, s := range list {
		slots[s.a] = &node{s.at, i, slots[s.a], slots[s.b]}
	}
	return slots[root]
}

// run returns the result as it is sent, which a slot has after all additions.
func (e *evaluation) run(slot int, list []addition, ranks int) (*parcel, error) {
	sum, err := e.eval(tree(list, ranks, slot))
	if err != nil {
		return nil, err
	}
	return e.result(sum)
}

func (e *evaluation) eval(n *node) (slot, error) {
	if n.step < 0 {
		if err := meter.Err(e.ctx); err != nil {
			return slot{}, err
		}
		values := e.buffer()
		e.leaf(values, n.at)
		return e.operand(values, n.at)
	}
	a, err := e.fetch(n, n.a, saltA)
	if err != nil {
		return slot{}, err
	}
	b, err := e.fetch(n, n.b, saltB)
	if err != nil {
		return slot{}, err
	}
	err = e.add(&a, b, n.step)
	e.free = append(e.free, b.values)
	return a, err
}

// fetch returns what an addition has of one of its two.
func (e *evaluation) fetch(to, n *node, kind int) (slot, error) {
	s, err := e.eval(n)
	if err != nil || n.at == to.at {
		return s, err
	}
	m, err := e.message(s, e.salt(kind, to.step))
	if err != nil {
		return s, err
	}
	if e.traffic != nil {
		e.traffic.count(n.at, m.wire.String(), m.bytes())
	}
	m.decode(s.values)
	return slot{values: s.values, partial: s.partial}, nil
}

func (e *evaluation) buffer() []float32 {
	if k := len(e.free) - 1; k >= 0 {
		b := e.free[k]
		e.free = e.free[:k]
		return b
	}
	return make([]float32, e.n)
}
