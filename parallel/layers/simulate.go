package layers

import (
	"context"
	"math"
)

// Simulation is the sum alone of a reduction, over any number of ranks: of R operands of
// n elements it holds about log2 R at a time, not R. It is the part of an all-reduce
// that ends at rank 0, as [Exchange.AllReduce] would sum it, with the Cols, Wire,
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
	p, err := e.run(s.schedule(), s.Ranks)
	if err != nil {
		return nil, SumError{}, err
	}
	sum := make([]float32, s.Elements)
	p.decode(sum)
	return sum, errorOf(sum, exact, magnitudes), nil
}

// schedule returns that of the part that ends at rank 0.
func (s *Simulation) schedule() *schedule {
	b := sumBuilder{where: identity(s.Ranks)}
	slot := b.sum(s.Order, s.Ranks, 0)
	return &schedule{parts: 1, sums: [][]addition{b.list}, owner: []int{b.where[slot]}, slot: []int{slot}}
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
