package nn

import (
	"context"
	"math"
	"strings"
	"sync/atomic"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/swiglu"
)

// AttentionConfig is the shape of an [Attention].
type AttentionConfig struct {
	Dim     int     // of what goes in and comes out; a multiple of Heads
	Heads   int     // query heads, of Dim/Heads each
	KVHeads int     // key and value heads, a divisor of Heads; 0: Heads
	Rotary  *Rotary // positions, of heads of Dim/Heads; nil: none
}

func (c AttentionConfig) headDim() int { return c.Dim / c.Heads }

// kvDim is the width of all keys, or values, of one position.
func (c AttentionConfig) kvDim() int { return c.KVHeads * c.headDim() }

func (c AttentionConfig) withDefaults() AttentionConfig {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	return c
}

func (c AttentionConfig) check() error {
	switch {
	case c.Dim <= 0 || c.Heads <= 0 || c.Dim%c.Heads != 0:
		return configError("AttentionConfig.Dim is %d and Heads %d: they must be positive, and Dim a multiple of Heads", c.Dim, c.Heads)
	case c.KVHeads < 0 || c.withDefaults().Heads%c.withDefaults().KVHeads != 0:
		return configError("AttentionConfig.KVHeads is %d: it must divide Heads = %d", c.KVHeads, c.Heads)
	case c.Rotary != nil && c.Rotary.headDim != c.headDim():
		return configError("AttentionConfig.Rotary is for heads of %d elements: Dim/Heads is %d", c.Rotary.headDim, c.headDim())
	}
	return checkMatrix("an attention's projection", c.Dim, c.Dim)
}

// Attention is causal self-attention (Vaswani et al., arXiv 1706.03762) with rotary
// positions and grouped queries (Ainslie et al., arXiv 2305.13245): Heads query heads
// share KVHeads heads of keys and values, in consecutive groups. Its four projections
// are linear layers with the options given; scores, softmax and their products are
// FP32.
type Attention struct {
	Query, Key, Value, Output *Linear

	config   AttentionConfig
	layer    string // its name in taps
	headDim  int
	scale    float32 // of the scores
	workers  int
	shared   *Shared
	scratch  *scratch
	keepsAll bool // probabilities too, which are otherwise computed again

	inE5M6  *keptE5M6      // mixed, where that is so kept
	rounder *resultRounder // of softmax
	sums    sums

	input      *commonInput // of query, key and value
	batch, seq int
	*projections
	mixed    *[]float32 // the values that attention has weighted
	probs    []float32  // [batch, heads, seq, seq], zero above the diagonal
	hasProbs bool       // of the last Forward
	ready    bool

	own struct { // memory
		projections
		mixed []float32
	}
}

// NewAttention returns an attention whose weights are zero, to be filled in. They are
// named prefix+"q_proj.weight", "k_proj.weight", "v_proj.weight" and "o_proj.weight".
// The error is [ErrConfig].
func NewAttention(prefix string, c AttentionConfig, o Options) (*Attention, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	return newAttention(prefix, c.withDefaults(), o)
}

func newAttention(prefix string, c AttentionConfig, o Options) (*Attention, error) {
	a := &Attention{
		config:   c,
		layer:    strings.TrimSuffix(prefix, "."),
		headDim:  c.headDim(),
		scale:    float32(1 / math.Sqrt(float64(c.headDim()))),
		workers:  o.Workers,
		shared:   o.Shared,
		scratch:  &o.Shared.scratch,
		keepsAll: o.Activations.keepsInputs(),
		input:    newCommonInput(o),
		rounder:  newResultRounder(o.Operators.Softmax, 1),
		sums:     newSums(o.Operators.Reductions),
	}
	if o.Activations.keepsTiles() {
		a.inE5M6 = &keptE5M6{workers: o.Workers}
	}
	for _, p := range []struct {
		layer   **Linear
		name    string
		out     int
		options Options
	}{
		{&a.Query, "q_proj.weight", c.Dim, o}, {&a.Key, "k_proj.weight", c.kvDim(), o},
		{&a.Value, "v_proj.weight", c.kvDim(), o}, {&a.Output, "o_proj.weight", c.Dim, o.roundInput()},
	} {
		var err error
		if *p.layer, err = newLinear(prefix+p.name, newParam(prefix+p.name, p.out, c.Dim), p.options); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Params returns the weights of the projections: query, key, value, output.
func (a *Attention) Params() []*Param {
	return []*Param{a.Query.Weight, a.Key.Weight, a.Value.Weight, a.Output.Weight}
}

// Forward writes the attention of x to y, both [batch·seq, dim], sequence after
// sequence; they must not overlap. Tokens see themselves and those before them in
// their sequence. The layer keeps x, which must stay as it is until
// [Attention.Backward], but with FP8 activations, of which it makes a copy in FP8.
func (a *Attention) Forward(ctx context.Context, y, x []float32, batch, seq int) error {
	a.ready = false
	if err := a.check(y, x, batch, seq); err != nil {
		return err
	}
	a.batch, a.seq = batch, seq
	training := a.shared.training()
	a.projections = choose(training, &a.own.projections, &a.scratch.projections)
	a.mixed = choose(training && a.keepsAll, &a.own.mixed, &a.scratch.mixed)
	rows := batch * seq
	q := sized(&a.q, rows*a.config.Dim)
	k := sized(&a.k, rows*a.config.kvDim())
	v := sized(&a.v, len(k))
	a.input.begin()
	if err := a.Query.forward(ctx, q, x, rows, a.input); err != nil {
		return err
	}
	if err := a.Key.forward(ctx, k, x, rows, a.input); err != nil {
		return err
	}
	if err := a.Value.forward(ctx, v, x, rows, a.input); err != nil {
		return err
	}
	if r := a.config.Rotary; r != nil {
		r.rotate(q, a.config.Heads, seq, a.workers, 1)
		r.rotate(k, a.config.KVHeads, seq, a.workers, 1)
	}
	a.shared.tap(a.layer, ".query", q, rows)
	a.shared.tap(a.layer, ".key", k, rows)
	a.shared.tap(a.layer, ".value", v, rows)
	if err := a.mix(ctx); err != nil {
		return err
	}
	a.shared.tap(a.layer, ".mixed", *a.mixed, rows)
	if err := a.Output.multiply(ctx, y, *a.mixed, rows, swiglu.Scales{}, nil); err != nil {
		return err
	}
	err := a.keep(ctx, rows)
	a.ready = err == nil && training
	return err
}

// keep keeps, in training, the input of the output projection.
func (a *Attention) keep(ctx context.Context, rows int) error {
	switch {
	case a.inE5M6 == nil:
		return a.Output.keep(ctx, *a.mixed, rows, nil)
	case a.shared.training():
		a.inE5M6.keep(*a.mixed, rows, a.config.Dim)
	}
	return nil
}

func (a *Attention) check(y, x []float32, batch, seq int) error {
	n, ok := product(batch, seq, a.config.Dim)
	_, scores := product(batch, a.config.Heads, seq, seq)
	switch {
	case batch <= 0 || seq <= 0 || !ok || uint64(len(x)) != n || len(y) != len(x):
		return inputError("%s: an input of %d and an output of %d elements are not %d sequences of %d rows of %d",
			a.layer, len(x), len(y), batch, seq, a.config.Dim)
	case a.config.Rotary != nil && seq > a.config.Rotary.context:
		return inputError("%s: seq is %d: its rotary positions are for %d", a.layer, seq, a.config.Rotary.context)
	case !scores:
		return inputError("%s: the scores of %d sequences of %d are too many", a.layer, batch, seq)
	}
	return nil
}

// mix computes mixed, and probs if they are kept, from q, k and v.
func (a *Attention) mix(ctx context.Context) error {
	if a.hasProbs = a.keepsAll && a.shared.training(); a.hasProbs {
		sized(&a.probs, a.batch*a.config.Heads*a.seq*a.seq)
	}
	sized(a.mixed, len(a.q))
	return a.eachGroup(ctx, (*headGroup).forward)
}

// eachGroup calls do for each sequence and head of keys and values.
func (a *Attention) eachGroup(ctx context.Context, do func(*headGroup)) error {
	heads := a.config.KVHeads
	var failed atomic.Pointer[error]
	parallel.For(a.batch*heads, 1, a.workers, func(lo, hi int) {
		group := newHeadGroup(a)
		for i := lo; i < hi; i++ {
			if err := meter.Err(ctx); err != nil {
				failed.Store(&err)
				return
			}
			group.at(i/heads, i%heads)
			do(group)
		}
	})
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Backward takes the gradient dy of what the last Forward wrote. It writes that of x
// to dx, which must not overlap dy, and adds those of the weights to their Grad.
func (a *Attention) Backward(ctx context.Context, dx, dy []float32) error {
	if !a.ready {
		return noForward(a.layer)
	}
	rows := a.batch * a.seq
	if len(dx) != rows*a.config.Dim || len(dy) != len(dx) {
		return inputError("%s: gradients of %d input and %d output elements are not the %d rows of Forward", a.layer, len(dx), len(dy), rows)
	}
	a.ready = false
	s := a.scratch
	if a.inE5M6 != nil {
		a.inE5M6.restore(sized(a.mixed, len(a.q)))
		a.Output.restore(*a.mixed, rows)
	}
	if err := a.Output.Backward(ctx, sized(&s.dMixed, len(a.q)), dy); err != nil {
		return err
	}
	if err := a.mixBackward(ctx); err != nil {
		return err
	}
	a.shared.tap(a.layer, ".query_gradient", s.dq, rows)
	a.shared.tap(a.layer, ".key_gradient", s.dk, rows)
	a.shared.tap(a.layer, ".value_gradient", s.dv, rows)
	if r := a.config.Rotary; r != nil {
		r.rotate(s.dq, a.config.Heads, a.seq, a.workers, -1)
		r.rotate(s.dk, a.config.KVHeads, a.seq, a.workers, -1)
	}
	a.input.begin()
	if err := a.Query.backward(ctx, dx, s.dq, a.input); err != nil {
		return err
	}
	part := sized(&s.part, len(dx))
	if err := a.Key.backward(ctx, part, s.dk, a.input); err != nil {
		return err
	}
	add(dx, dx, part, a.workers)
	if err := a.Value.backward(ctx, part, s.dv, a.input); err != nil {
		return err
	}
	add(dx, dx, part, a.workers)
	return nil
}

// mixBackward computes dq, dk and dv from dMixed.
func (a *Attention) mixBackward(ctx context.Context) error {
	sized(&a.scratch.dq, len(a.q))
	clear(sized(&a.scratch.dk, len(a.k)))
	clear(sized(&a.scratch.dv, len(a.v)))
	return a.eachGroup(ctx, (*headGroup).backward)
}
