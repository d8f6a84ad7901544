package attention

import (
	"context"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// Forward writes softmax(scale·Q·Kᵀ)·V of every query head to out, [heads, queries, DV], in
// the canonical order that this package's description has. out must not overlap operands.
//
// It returns an error, and writes nothing, if [Problem.Check] does, if the scales of Q and K
// or of V cannot be applied ([gemm.ErrBlocks], [gemm.ErrOperands], [ErrScales]), if an option
// is out of range, or if a result is not of the right length ([ErrShape]). If ctx ends
// meanwhile it returns an error that wraps its cause, and results are unspecified. Safe for concurrent
// use on distinct results; once warm it allocates nothing.
func Forward[T Output](ctx context.Context, out []T, p *Problem, o Options) error {
	r := newRun()
	defer r.drop()
	a := r.add()
	if err := a.ofProblem(p); err != nil {
		return err
	}
	if err := setOutput(a, out, &o); err != nil {
		return err
	}
	return r.compute(ctx, o)
}

// setOutput says where results of an attention go.
func setOutput[T Output](a *computation, out []T, o *Options) error {
	s := a.sizes
	if err := o.check(s.Heads * s.Queries); err != nil {
		return err
	}
	if err := sentinel.Length(ErrShape, "attention: out", len(out), s.Heads*s.Queries*s.ValueDim); err != nil {
		return err
	}
	a.lse, a.max = o.LSE, o.Max
	switch out := any(out).(type) {
	case []float32:
		a.out32 = out
	case []fp8.BFloat16:
		a.out16 = out
	}
	return nil
}

// compute computes every attention that was added.
func (r *run) compute(ctx context.Context, o Options) error {
	if err := meter.Err(ctx); err != nil {
		return inPackage(err)
	}
	r.ctx, r.format, r.splits = ctx, o.P, r.useful(o.Splits)
	jobs := r.cut(o.Workers)
	r.merging = false
	r.queue.Run(jobs, o.Workers, r)
	if r.splits > 1 && ctx.Err() == nil {
		r.merging = true
		r.queue.Run(len(r.all), o.Workers, r)
	}
	if err := meter.Err(ctx); err != nil {
		return inPackage(err)
	}
	return nil
}

// useful returns how many splits there are to compute: those beyond the number of tiles have
// no keys and change nothing, but that two are merged and one is not.
func (r *run) useful(splits int) int {
	most := 2
	for i := range r.all {
		most = max(most, ceilDiv(r.all[i].sizes.Keys, tile))
	}
	return min(max(splits, 1), most)
}
