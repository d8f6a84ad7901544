// Package verify judges what a kernel made of C = A·Bᵀ: whether it is what was
// demanded, how far it is from the exact result, and where it went wrong first.
package verify

import (
	"context"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// Want is the result that is demanded.
type Want uint8

const (
	// Exact is the correctly rounded result, within a bound.
	Exact Want = iota
	// Canonical is that of package gemm, bit for bit.
	Canonical
	// Predicted is what a model of a GPU says, bit for bit.
	Predicted
)

// Demand is what a result has to be.
type Demand struct {
	Want Want
	// Kernel is what predicts, where Want is Predicted.
	Kernel oracle.Kernel
	// Accumulation is what the bound of Exact follows from.
	Accumulation oracle.Accumulation
}

// Job is a product, and what its result has to be.
type Job struct {
	A, B    *tensor.Tensor
	Options oracle.Options
	Demand  Demand
}

// Run judges got, the result of shape [M, N] of a kernel; old is the C to which
// the product was added where the options say so, otherwise nil. It returns an
// error if a product of A and B is one for package gemm or for the oracle, and when
// ctx ends. It panics if got or old is not of M*N elements.
func Run[T gemm.Output](ctx context.Context, j Job, got, old []T) (*Result, error) {
	w, err := newWanted(ctx, j, old)
	if err != nil {
		return nil, err
	}
	r := j.describe()
	if r.Report, err = w.compare(ctx, j, got); err != nil {
		return nil, err
	}
	r.Pass = r.Report.Equal
	if j.Demand.Want == Exact {
		r.Pass = r.Report.Outside == 0
	} else {
		within, err := oracle.Compare(ctx, got, w.exact, w.bound, j.comparison())
		if err != nil {
			return nil, err
		}
		r.Exact = &within
	}
	r.LargestBound = largest(w.bound)
	r.Map = newErrorMap(r.Report.Rows, r.Report.Cols, j.Options.Workers, w.errors(got))
	return r, nil
}

// wanted is what a result is compared with.
type wanted[T gemm.Output] struct {
	demanded []T
	exact    []T       // the same where that is demanded
	bound    []float64 // of the distance to exact
	bits     bool      // demanded is to be met bit for bit
}

func newWanted[T gemm.Output](ctx context.Context, j Job, old []T) (*wanted[T], error) {
	m, _ := j.A.Dims()
	n, _ := j.B.Dims()
	fresh := func() []T {
		if j.Options.Accumulate {
			return slices.Clone(old)
		}
		return make([]T, m*n)
	}
	w := &wanted[T]{exact: fresh(), bound: make([]float64, m*n), bits: j.Demand.Want != Exact}
	if err := oracle.Exact(ctx, w.exact, j.A, j.B, j.Options); err != nil {
		return nil, err
	}
	w.demanded = w.exact
	if w.bits {
		w.demanded = fresh()
	}
	return w, w.fill(ctx, j, old)
}

// fill computes the demanded result, where it is not the exact one, and the
// bound.
func (w *wanted[T]) fill(ctx context.Context, j Job, old []T) error {
	switch j.Demand.Want {
	case Predicted:
		return oracle.Predict(ctx, w.demanded, w.bound, j.A, j.B, j.Demand.Kernel, j.Options)
	case Canonical:
		if err := gemm.Multiply(ctx, w.demanded, j.A, j.B, j.Options); err != nil {
			return err
		}
	}
	return oracle.Bound(ctx, w.bound, old, j.A, j.B, j.accumulation(), j.Options)
}

// accumulation is what the bound follows from.
func (j Job) accumulation() oracle.Accumulation {
	if j.Demand.Want == Canonical {
		return oracle.Accumulation{Scales: oracle.AThenB}
	}
	return j.Demand.Accumulation
}

// compare compares with what is demanded, and by which rule.
func (w *wanted[T]) compare(ctx context.Context, j Job, got []T) (oracle.Report, error) {
	bound := w.bound
	if w.bits {
		bound = nil
	}
	return oracle.Compare(ctx, got, w.demanded, bound, j.comparison())
}

func (j Job) comparison() oracle.Comparison {
	m, _ := j.A.Dims()
	n, _ := j.B.Dims()
	return oracle.Comparison{Rows: m, Cols: n, A: j.A, B: j.B, Progress: j.Options.Progress, Workers: j.Options.Workers}
}

func largest(bound []float64) oracle.Number {
	if len(bound) == 0 {
		return 0
	}
	return oracle.Number(slices.Max(bound))
}
