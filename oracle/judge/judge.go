package judge

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/power"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/tensor"
)

// Options of a judgement.
type Options struct {
	Bias    []float32 // that the kernel added to every row of C; of length N, or nil
	Workers int       // goroutines at most; 0 means GOMAXPROCS, and negative is an error

	// Sample, unless nil, has only some elements of C looked at.
	Sample *Sample

	// Progress, unless nil, hears of the parts of the judgement in turn: "exact", or
	// "sample", and so on.
	Progress progress.Reporter
}

// Check judges got, of shape [M, N] and dense, which a kernel is claimed to have made of
// a, of shape [M, K], and b, of [N, K]; old is the C to which the product was added, or
// nil where it was added to none. Nothing is kept of them.
//
// Errors are operands that gemm or the oracle refuses, a got, old or bias of a wrong length
// ([gemm.ErrOperands]), a sample that lies outside of C ([ErrSample]), and the end of ctx. A
// result that is wrong is no error but a verdict, which does not depend on Workers. Safe for
// concurrent use.
func Check[T gemm.Output](ctx context.Context, got, old []T, a, b *tensor.Tensor, claim Claim, o Options) (*Verdict, error) {
	j, err := newJob(a, b, claim, o)
	if err != nil {
		return nil, err
	}
	if !j.fits(len(got)) || old != nil && len(old) != len(got) {
		return nil, sentinel.Errorf(gemm.ErrOperands, "judge: got has %d elements and the old C %d: C is [%d, %d]", len(got), len(old), j.m, j.n)
	}
	j.options.Accumulate = old != nil
	v := j.describe()
	v.Type = typeOf[T]()
	var at []int
	if o.Sample != nil {
		if at, v.Sample, err = choose(ctx, j, o.Sample, got, old); err != nil {
			return nil, err
		}
	}
	if err := decide(ctx, v, j, got, old, at); err != nil {
		return nil, err
	}
	return v, judgeOther(ctx, v, j, got, old, at)
}

// decide completes the verdict on the elements at the given places, or all if at is nil.
func decide[T gemm.Output](ctx context.Context, v *Verdict, j *job, got, old []T, at []int) error {
	looked := got
	if v.Sample != nil {
		looked = gather(got, at)
	}
	w, err := newWanted(ctx, j, old, at)
	if err != nil {
		return err
	}
	if err := w.fillFinite(ctx, j, looked, old); err != nil {
		return err
	}
	if err := judge(ctx, v, j, w, looked); err != nil {
		return err
	}
	if err := lookTogether(ctx, v, j, got, old); err != nil {
		return err
	}
	v.Outcome = verdict.Fail
	if v.Pass {
		v.Outcome = verdict.Pass
		if v.Doubt = w.doubt(v, j, looked); v.Doubt != nil {
			v.Pass, v.Outcome = false, verdict.Undecided
		}
	}
	if v.Pass || v.Doubt != nil {
		return nil
	}
	return explain(ctx, v, j, w, got, looked, old)
}

// choose returns the elements to look at.
func choose[T gemm.Output](ctx context.Context, j *job, s *Sample, got, old []T) ([]int, *Sampled, error) {
	rest := math.NaN()
	var far []suspect
	if most := s.suspects(); most > 0 {
		var err error
		if far, rest, err = suspects(ctx, j, got, old, most); err != nil {
			return nil, nil, err
		}
	}
	at, d := s.places(j.m, j.n, far...)
	d.Rest = oracle.Number(rest)
	return at, d, nil
}

// job is a product and what is claimed of it.
type job struct {
	a, b    *tensor.Tensor
	m, n, k int
	claim   Claim
	options oracle.Options
}

// newJob checks all but the lengths of C.
func newJob(a, b *tensor.Tensor, claim Claim, o Options) (*job, error) {
	if err := claim.Check(); err != nil {
		return nil, err
	}
	size, err := gemm.CheckOperands(a, b)
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	if o.Workers < 0 {
		return nil, fmt.Errorf("judge: %d workers: want 0 or more", o.Workers)
	}
	if o.Bias != nil && len(o.Bias) != size.N {
		return nil, sentinel.Length(gemm.ErrOperands, "judge: the bias", len(o.Bias), size.N)
	}
	if o.Sample != nil {
		if err := o.Sample.check(size.M, size.N); err != nil {
			return nil, err
		}
	}
	return &job{a: a, b: b, m: size.M, n: size.N, k: size.K, claim: claim,
		options: oracle.Options{Bias: o.Bias, Workers: o.Workers, Progress: o.Progress}}, nil
}

// fits reports whether C has n elements.
func (j *job) fits(n int) bool {
	high, low := bits.Mul64(uint64(j.m), uint64(j.n))
	return high == 0 && low == uint64(n)
}

// judge compares the elements that are looked at, and completes the verdict.
func judge[T gemm.Output](ctx context.Context, v *Verdict, j *job, w *wanted[T], looked []T) (err error) {
	bound := w.bound
	if w.bits {
		bound = nil
	}
	if v.Comparison, err = oracle.Compare(ctx, looked, w.claimed, bound, w.comparison(j)); err != nil {
		return err
	}
	v.Pass = v.Comparison.Equal
	if !w.bits {
		v.Pass = v.Comparison.Outside == 0
	} else {
		within, err := oracle.Compare(ctx, looked, w.exact, w.bound, w.comparison(j))
		if err != nil {
			return err
		}
		v.Exact = &within
	}
	v.LargestBound = largest(w.bound)
	blind := power.NewBlind(w.bound, w.exact, w.at, j.a, j.b)
	v.Blind = &blind
	v.errorMap = verdict.NewMap(j.m, j.n, w.at, j.options.Workers, w.errors(looked))
	return nil
}

// wanted is what a result, or some of its elements, is compared with.
type wanted[T gemm.Output] struct {
	at      []int // the elements, in ascending order; nil: all
	claimed []T
	exact   []T       // the same where that is claimed
	bound   []float64 // of the distance to exact
	bits    bool      // claimed is to be met bit for bit
}

func (w *wanted[T]) comparison(j *job) oracle.CompareOptions {
	return oracle.CompareOptions{Rows: j.m, Cols: j.n, At: w.at, A: j.a, B: j.b, Progress: j.options.Progress, Workers: j.options.Workers}
}

func largest(bound []float64) oracle.Number {
	if len(bound) == 0 {
		return 0
	}
	return oracle.Number(slices.Max(bound))
}
