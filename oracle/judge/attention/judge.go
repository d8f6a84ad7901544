package attention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle/explain"
	"github.com/octavo-fp8/octavo/oracle/flash"
	"github.com/octavo-fp8/octavo/progress"
)

// Options say how to judge.
type Options struct {
	Queries  int               // of each head, evenly spread; 0 is all
	Workers  int               // goroutines at most; 0 means GOMAXPROCS
	Progress progress.Reporter // unless nil, hears of rows
}

// Result is a problem and what a kernel made of it.
type Result[T gemm.Output] struct {
	Problem *attention.Problem
	Out     []T       // [Heads, Queries, ValueDim]
	LSE     []float32 // log-sum-exps, [Heads, Queries]; nil where the kernel does not return them
}

// Check judges what a kernel made of the sequences of a batch, which have the same heads and
// the same mask. Nothing is kept of them.
//
// It returns an error for problems that are none, for a result of another size
// ([attention.ErrShape]), for a claim of a kernel that cannot compute them
// ([flash.ErrKernel]), and when ctx ends; a result that is wrong is no error but a verdict,
// which does not depend on Workers. Safe for concurrent use.
func Check[T gemm.Output](ctx context.Context, results []Result[T], c Claim, o Options) (*Verdict, error) {
	switch {
	case len(results) == 0:
		return nil, errors.New("attention: there is no result to judge")
	case c.Bits && c.Kernel == nil:
		return nil, errors.New("attention: the claim demands bits and names no kernel")
	case o.Queries < 0 || o.Workers < 0:
		return nil, fmt.Errorf("attention: %d queries, %d workers: want 0 or more", o.Queries, o.Workers)
	}
	j := &job{claim: c, options: o,
		out: map[number.Format]flash.Cast{number.BF16: flash.BFloat16, number.FP16: flash.Float16}[number.Of[T]()]}
	for _, r := range results {
		if err := r.check(); err != nil {
			return nil, err
		}
		j.sequences = append(j.sequences, newSequence(r, o))
	}
	v, err := j.judge(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case v.Undecided != "" || v.Pass && !v.Bits && v.total().Unbounded+v.total().Wide > 0:
		v.Pass, v.Outcome = false, verdict.Undecided
	case v.Pass:
		v.Outcome = verdict.Pass
	default:
		v.Outcome = verdict.Fail
	}
	return v, nil
}

// check refuses a problem that is none, and a result of another size.
func (r *Result[T]) check() error {
	if err := r.Problem.Check(); err != nil {
		return err
	}
	s := r.Problem.Sizes()
	if rows := s.Heads * s.Queries; len(r.Out) != rows*s.ValueDim || r.LSE != nil && len(r.LSE) != rows {
		return sentinel.Errorf(attention.ErrShape, "attention: %d outputs and %d log-sum-exps: want those of %d heads, %d queries and %d columns",
			len(r.Out), len(r.LSE), s.Heads, s.Queries, s.ValueDim)
	}
	return nil
}

// job is what is judged.
type job struct {
	claim     Claim
	options   Options
	sequences []*sequence
	out       flash.Cast // format of the output
}

// sequence is a problem with what the kernel made of it, and what is looked at.
type sequence struct {
	p      *attention.Problem
	sizes  attention.Sizes
	all    flash.Got
	looked []int // queries; nil: all
	// Of what is looked at:
	rows flash.Options
	got  flash.Got
	want *flash.Result[float64]
	part attention.Sizes
}

func newSequence[T gemm.Output](r Result[T], o Options) *sequence {
	s := &sequence{p: r.Problem, sizes: r.Problem.Sizes(), all: flash.Got{LSE: r.LSE},
		rows: flash.Options{Workers: o.Workers, Progress: o.Progress}}
	for _, x := range r.Out {
		s.all.Out = append(s.all.Out, number.Float32(x))
	}
	s.got, s.part = s.all, s.sizes
	if o.Queries == 0 || o.Queries >= s.sizes.Queries {
		return s
	}
	s.looked, s.part.Queries = explain.Spread(s.sizes.Queries, o.Queries), o.Queries
	s.got, s.rows.Rows = flash.Got{}, []int{}
	for h := range s.sizes.Heads {
		for _, i := range s.looked {
			row, n := h*s.sizes.Queries+i, s.sizes.ValueDim
			s.rows.Rows = append(s.rows.Rows, row)
			s.got.Out = append(s.got.Out, s.all.Out[row*n:(row+1)*n]...)
			if r.LSE != nil {
				s.got.LSE = append(s.got.LSE, r.LSE[row])
			}
		}
	}
	return s
}

// judge gives the verdict but for the outcome. Where the result is wrong and nothing explains it,
// it asks whether something does that is not claimed: other tiles, or a GPU's sums.
func (j *job) judge(ctx context.Context) (*Verdict, error) {
	for _, s := range j.sequences {
		var err error
		if s.want, err = flash.Exact[float64](ctx, s.p, s.rows); err != nil {
			return nil, err
		}
	}
	v, err := j.claimed(ctx)
	if err != nil || v.within() {
		return v, err
	}
	// A fault that fits whichever way weights are cast may be what truncated sums look like.
	if f := v.Fault(); f != nil && !f.AnyCast {
		return v, nil
	}
	longest := slices.MaxFunc(j.sequences, func(a, b *sequence) int { return cmp.Compare(a.sizes.Keys, b.sizes.Keys) })
	sums, err := j.claim.sums(ctx, longest.p, j.out)
	if err != nil {
		return nil, err
	}
	for _, g := range sums {
		ok, err := j.covered(ctx, g)
		if err != nil {
			return nil, err
		}
		if ok {
			v.Undecided = g.Sums
			for b := range v.Sequences {
				v.Sequences[b].Explanation = nil
			}
			return v, nil
		}
	}
	if v.Fault() != nil {
		return v, nil
	}
	guesses := j.claim.tilings()
	if len(sums) > 0 {
		guesses = append(guesses, sums[len(sums)-1])
	}
	for _, g := range guesses {
		if err := j.explain(ctx, v, g); err != nil || v.Fault() != nil {
			return v, err
		}
	}
	return v, nil
}

// covered reports whether the results are within the bounds of a guess.
func (j *job) covered(ctx context.Context, g guess) (bool, error) {
	for _, s := range j.sequences {
		k, err := g.KernelOf(s.p, j.out)
		if err != nil {
			return false, err
		}
		r, _, err := s.compare(ctx, g.bound(k))
		if err != nil || !r.OK() {
			return false, err
		}
	}
	return true, nil
}

// compare compares a result with the exact one under the bounds of a claim. It returns the
// largest error of each row in units of its bounds, too.
func (s *sequence) compare(ctx context.Context, c flash.Numerics) (r flash.Comparison, ratios []float64, err error) {
	want := *s.want
	if c.Base2 {
		want.LSE = slices.Clone(want.LSE)
		for i := range want.LSE {
			want.LSE[i] *= math.Log2E
		}
	}
	l, err := flash.Bound(ctx, s.p, c, s.rows)
	if err != nil {
		return r, nil, err
	}
	one := attention.Sizes{Heads: 1, KVHeads: 1, Queries: 1, ValueDim: s.part.ValueDim}
	for row := range s.part.Heads * s.part.Queries {
		lo, hi := row*one.ValueDim, (row+1)*one.ValueDim
		got := flash.Got{Out: s.got.Out[lo:hi]}
		if s.got.LSE != nil {
			got.LSE = s.got.LSE[row : row+1]
		}
		r := flash.Compare(got, &flash.Result[float64]{Out: want.Out[lo:hi], LSE: want.LSE[row : row+1]},
			&flash.Limits{Out: l.Out[lo:hi], LSE: l.LSE[row : row+1]}, one)
		ratios = append(ratios, worst(&r))
	}
	return flash.Compare(s.got, &want, l, s.part), ratios, nil
}

// worst is the largest error in units of its bound.
func worst(r *flash.Comparison) (ratio float64) {
	for _, w := range []*flash.ElementError{r.Worst, r.WorstLSE} {
		if w != nil {
			ratio = max(ratio, float64(w.Ratio))
		}
	}
	return ratio
}

// mostGuessed is how many rows a guess has to explain of those that are wrong, and of all.
const mostGuessed = 16

// explain asks what explains the sequence that is the most wrong, if a guess is true.
func (j *job) explain(ctx context.Context, v *Verdict, g guess) error {
	b := v.worstSequence()
	s, q := j.sequences[b], &v.Sequences[b]
	k, err := g.KernelOf(s.p, j.out)
	if err != nil {
		return err
	}
	var wrong []int
	for h, r := range q.Comparison.Heads {
		for _, i := range r.Rows {
			wrong = append(wrong, h*s.sizes.Queries+i)
		}
	}
	rows := explain.Spread(s.sizes.Heads*s.sizes.Queries, mostGuessed)
	for _, i := range explain.Spread(len(wrong), mostGuessed) {
		rows = append(rows, wrong[i])
	}
	slices.Sort(rows)
	o := flash.Options{Rows: slices.Compact(rows), Workers: j.options.Workers, Progress: j.options.Progress}
	e, err := flash.Explain(ctx, s.p, s.all, k, o)
	if err == nil && len(e.Findings) > 0 {
		q.Explanation, v.Supposed = e, g.text
	}
	return err
}

// claimed gives the verdict as the claim has it.
func (j *job) claimed(ctx context.Context) (*Verdict, error) {
	p, s := j.sequences[0].p, j.sequences[0].sizes
	k, err := j.claim.KernelOf(p, j.out)
	if err != nil {
		return nil, err
	}
	v := &Verdict{Pass: true, Batch: len(j.sequences), Heads: s.Heads, KVHeads: s.KVHeads, Dim: s.Dim, ValueDim: s.ValueDim,
		Q:     j.describe(func(p *attention.Problem) attention.Operand { return p.Q }),
		K:     j.describe(func(p *attention.Problem) attention.Operand { return p.K }),
		V:     j.describe(func(p *attention.Problem) attention.Operand { return p.V }),
		Scale: p.SoftmaxScale(), Causal: p.Mask.Causal, Window: p.Mask.Window, Sinks: p.Sinks != nil,
		Type: j.out, Kernel: k, Bits: j.claim.Bits}
	for _, s := range j.sequences {
		q, err := j.sequence(ctx, s, k)
		if err != nil {
			return nil, err
		}
		v.Sequences = append(v.Sequences, *q)
		v.Queries, v.Keys = max(v.Queries, q.Queries), max(v.Keys, q.Keys)
		v.Pass = v.Pass && q.Explanation == nil && (!v.Bits || q.SameBits.all())
	}
	return v, nil
}

// sequence judges one.
func (j *job) sequence(ctx context.Context, s *sequence, k flash.Kernel) (*Sequence, error) {
	r, ratios, err := s.compare(ctx, j.claim.bound(k))
	if err != nil {
		return nil, err
	}
	q := &Sequence{Queries: s.sizes.Queries, Keys: s.sizes.Keys, Looked: s.looked, Comparison: r, ratios: ratios}
	q.restore()
	if j.claim.Kernel != nil {
		is, err := flash.Predict(ctx, s.p, k, s.rows)
		if err != nil {
			return nil, err
		}
		q.SameBits = &Same{len(s.got.Out), same(s.got.Out, is.Out), len(s.got.LSE), same(s.got.LSE, is.LSE)}
	}
	e, err := flash.Explain(ctx, s.p, s.all, k, flash.Options{Workers: j.options.Workers, Progress: j.options.Progress})
	if err != nil {
		return nil, err
	}
	if !r.OK() || len(e.Findings) > 0 {
		q.Explanation = e
	}
	return q, nil
}

// same counts equal bits; NaN are equal whatever theirs.
func same(a, b []float32) (n int) {
	for i, x := range a {
		if x != x && b[i] != b[i] || math.Float32bits(x) == math.Float32bits(b[i]) {
			n++
		}
	}
	return n
}

// restore gives queries the numbers that they have among all.
func (q *Sequence) restore() {
	if q.Looked == nil {
		return
	}
	for _, w := range []*flash.ElementError{q.Comparison.Worst, q.Comparison.WorstLSE} {
		if w != nil {
			w.Query = q.Looked[w.Query]
		}
	}
	for _, h := range q.Comparison.Heads {
		for n, i := range h.Rows {
			h.Rows[n] = q.Looked[i]
		}
	}
}

// describe says what an operand of all problems holds: those without tokens have no scales.
func (j *job) describe(of func(p *attention.Problem) attention.Operand) string {
	o := of(j.sequences[0].p)
	for _, s := range j.sequences {
		if _, tokens, _ := of(s.p).Dims(); tokens > 0 {
			o = of(s.p)
			break
		}
	}
	if o.Codes == nil {
		return "BF16"
	}
	heads, tokens, dim := o.Dims()
	rows, cols := o.Codes.Block.Extents(heads*tokens, dim)
	text := "a scale for each head"
	switch {
	case len(o.Codes.Scales) == 1:
		text = "one scale"
	case rows < tokens:
		text = "a scale for each token"
	}
	if cols < dim {
		text += fmt.Sprintf(" and %d columns", cols)
	}
	if !o.Codes.Outer.None() {
		text += ", an outer scale"
	}
	return fmt.Sprintf("%v, %s", o.Codes.Format, text)
}
