package attention

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/tensor"
)

// Query is an attention over what a sequence has in its cache.
type Query struct {
	Sequence *Sequence

	Q Operand // [Heads, queries, Dim]; the cache's heads divide Heads

	// Scale, Cap, Mask and Sinks are those of a [Problem]. The last query stands at the last
	// token of the sequence. What was evicted takes no part, whatever the mask.
	Scale float32
	Cap   float32
	Mask  Mask
	Sinks []float32
}

// Attend writes softmax(scale·Q·Kᵀ)·V of every query head to out, [heads, queries, ValueDim],
// in the canonical order: the same bits as [Forward] of the operands that
// [Sequence.Operands] returns, but for tokens that were evicted. Records are multiplied as
// the bfloat16 values that they stand for, as FlashMLA does. Errors and panics are those of
// Forward. Several goroutines may attend to one sequence at once.
func Attend[T Output](ctx context.Context, out []T, q *Query, o Options) error {
	r := newRun()
	defer r.drop()
	a := r.add()
	if err := a.ofQuery(q); err != nil {
		return err
	}
	if err := setOutput(a, out, &o); err != nil {
		return err
	}
	return r.compute(ctx, o)
}

// ofQuery sets what a query says, once it is checked.
func (a *computation) ofQuery(q *Query) error {
	if err := q.Check(); err != nil {
		return err
	}
	s, c := q.Sequence, &q.Sequence.cache.config
	a.own[0] = newOperandSource(q.Q)
	a.q = &a.own[0]
	a.k, a.v = s.sources(&a.ownWide)
	a.cached = s
	heads, queries, _ := q.Q.Dims()
	a.sizes = Sizes{
		Heads: heads, KVHeads: c.KVHeads, Queries: queries, Keys: s.n, Dim: c.Dim,
		ValueDim: c.ValueDim,
	}
	a.mask, a.sinks, a.oneRow = q.Mask, q.Sinks, c.Record != nil
	a.wholeP = c.Elements == CacheFloat32
	p := Problem{Q: q.Q, Scale: q.Scale}
	return a.begin(p.SoftmaxScale(), q.Cap)
}

// Check reports what is wrong with the query: [ErrShape], [ErrScales], [ErrMask], or an
// error of packages tensor and gemm.
func (q *Query) Check() error {
	if q.Sequence == nil {
		return fmt.Errorf("%w: a query without a sequence", ErrShape)
	}
	if err := q.Q.check("Q"); err != nil {
		return err
	}
	c := &q.Sequence.cache.config
	switch heads, _, dim := q.Q.Dims(); {
	case dim != c.Dim:
		return fmt.Errorf("%w: rows of Q have %d elements, the cache's keys %d",
			ErrShape, dim, c.Dim)
	case heads%c.KVHeads != 0:
		return fmt.Errorf("%w: %d heads of the cache do not divide %d of Q",
			ErrShape, c.KVHeads, heads)
	}
	if t := q.Q.Codes; t != nil {
		if err := gemm.CheckBlocks(t.Block, tensor.Block{}); err != nil {
			return fmt.Errorf("attention: Q and the cache: %w", err)
		}
	}
	p := Problem{Q: q.Q, Scale: q.Scale, Cap: q.Cap, Sinks: q.Sinks}
	return p.checkNumbers()
}
