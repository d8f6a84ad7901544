package judge

import (
	"context"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// Options of a judgement.
type Options struct {
	Bias    []float32 // that the kernel added to every row of C; of length N, or nil
	Workers int       // goroutines at most; 0 means GOMAXPROCS, and negative is an error

	// Progress, unless nil, hears of the parts of the judgement in turn: "exact",
	// "bound" and so on.
	Progress progress.Reporter
}

// Check judges got, of shape [M, N] and dense, which a kernel is claimed to have made of
// a, of shape [M, K], and b, of [N, K]; old is the C to which the product was added, or
// nil where it was added to none. Nothing is kept of them.
//
// It returns an error if gemm or the oracle would for these operands, and when ctx
// ends; a result that is wrong is no error but a verdict. It panics if got, old or the
// bias is not of the right length. The verdict does not depend on Workers. Safe for
// concurrent use.
func Check[T gemm.Output](ctx context.Context, got, old []T, a, b *tensor.Tensor, claim Claim, o Options) (*Verdict, error) {
	if err := claim.Check(); err != nil {
		return nil, err
	}
	if _, err := gemm.CheckOperands(a, b); err != nil {
		return nil, err
	}
	j := job{a: a, b: b, claim: claim, options: oracle.Options{Bias: o.Bias, Accumulate: old != nil, Workers: o.Workers, Progress: o.Progress}}
	w, err := newWanted(ctx, &j, old)
	if err != nil {
		return nil, err
	}
	v := j.describe()
	v.Type = typeOf[T]()
	if v.Report, err = w.compare(ctx, &j, got); err != nil {
		return nil, err
	}
	v.Pass = v.Report.Equal
	if claim.Want == Exact {
		v.Pass = v.Report.Outside == 0
	} else {
		within, err := oracle.Compare(ctx, got, w.exact, w.bound, j.comparison())
		if err != nil {
			return nil, err
		}
		v.Exact = &within
	}
	v.LargestBound = largest(w.bound)
	v.Map = newErrorMap(v.Report.Rows, v.Report.Cols, o.Workers, w.errors(got))
	return v, nil
}

// job is a product and what is claimed of it.
type job struct {
	a, b    *tensor.Tensor
	claim   Claim
	options oracle.Options
}

// wanted is what a result is compared with.
type wanted[T gemm.Output] struct {
	claimed []T
	exact   []T       // the same where that is claimed
	bound   []float64 // of the distance to exact
	bits    bool      // claimed is to be met bit for bit
}

func newWanted[T gemm.Output](ctx context.Context, j *job, old []T) (*wanted[T], error) {
	m, _ := j.a.Dims()
	n, _ := j.b.Dims()
	fresh := func() []T {
		if j.options.Accumulate {
			return slices.Clone(old)
		}
		return make([]T, m*n)
	}
	w := &wanted[T]{exact: fresh(), bound: make([]float64, m*n), bits: j.claim.Want != Exact}
	if err := oracle.Exact(ctx, w.exact, j.a, j.b, j.options); err != nil {
		return nil, err
	}
	w.claimed = w.exact
	if w.bits {
		w.claimed = fresh()
	}
	return w, w.fill(ctx, j, old)
}

// fill computes the claimed result, where it is not the exact one, and the bound.
func (w *wanted[T]) fill(ctx context.Context, j *job, old []T) error {
	switch j.claim.Want {
	case Predicted:
		return oracle.Predict(ctx, w.claimed, w.bound, j.a, j.b, j.claim.Kernel, j.options)
	case Canonical:
		if err := gemm.Multiply(ctx, w.claimed, j.a, j.b, j.options); err != nil {
			return err
		}
	}
	return oracle.Bound(ctx, w.bound, old, j.a, j.b, j.claim.accumulation(), j.options)
}

// compare compares with what is claimed, and by which rule.
func (w *wanted[T]) compare(ctx context.Context, j *job, got []T) (oracle.Report, error) {
	bound := w.bound
	if w.bits {
		bound = nil
	}
	return oracle.Compare(ctx, got, w.claimed, bound, j.comparison())
}

func (j *job) comparison() oracle.Comparison {
	m, _ := j.a.Dims()
	n, _ := j.b.Dims()
	return oracle.Comparison{Rows: m, Cols: n, A: j.a, B: j.b, Progress: j.options.Progress, Workers: j.options.Workers}
}

func largest(bound []float64) oracle.Number {
	if len(bound) == 0 {
		return 0
	}
	return oracle.Number(slices.Max(bound))
}
