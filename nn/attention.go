package nn

import (
	"context"
	"slices"
)

// AttentionConfig is the shape of an [Attention].
type AttentionConfig struct {
	Dim     int     // of what goes in and comes out
	Heads   int     // query heads
	KVHeads int     // key and value heads, a divisor of Heads; 0: Heads
	HeadDim int     // of a head; 0: Dim/Heads, where Dim must be a multiple of Heads
	Rotary  *Rotary // positions, of heads of HeadDim; nil: none
	Scores
}

// shapes are those of the parameters, in their order, but for biases by the layers' names.
func (c AttentionConfig) shapes(n Norms, b Biases) (all []Shape) {
	all = slices.Concat(
		linearShapes("q_proj", c.queryDim(), c.Dim, b.QueryKeyValue), linearShapes("k_proj", c.kvDim(), c.Dim, b.QueryKeyValue),
		linearShapes("v_proj", c.kvDim(), c.Dim, b.QueryKeyValue), linearShapes("o_proj", c.Dim, c.queryDim(), b.Output),
	)
	if n.QueryKey {
		all = append(all, Shape{"q_norm.weight", 1, c.HeadDim}, Shape{"k_norm.weight", 1, c.HeadDim})
	}
	return append(all, c.sinks(c.Heads)...)
}

// linearShapes are those of a linear layer.
func linearShapes(name string, out, in int, bias bool) []Shape {
	if bias {
		return []Shape{{name + ".weight", out, in}, {name + ".bias", 1, out}}
	}
	return []Shape{{name + ".weight", out, in}}
}

// sinks is the shape of the sinks of so many heads, if there are any.
func (s Scores) sinks(heads int) []Shape {
	if !s.Sinks {
		return nil
	}
	return []Shape{{"sinks", 1, heads}}
}

// queryDim is the width of all queries of one position.
func (c AttentionConfig) queryDim() int { return c.Heads * c.HeadDim }

// kvDim is the width of all keys, or values, of one position.
func (c AttentionConfig) kvDim() int { return c.KVHeads * c.HeadDim }

func (c AttentionConfig) withDefaults() AttentionConfig {
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Dim / c.Heads
	}
	return c
}

func (c AttentionConfig) check() error {
	switch {
	case c.Dim <= 0 || c.Heads <= 0 || c.HeadDim < 0 || c.HeadDim == 0 && c.Dim%c.Heads != 0:
		return configError("AttentionConfig.Dim is %d, Heads %d and HeadDim %d: "+
			"they must be positive, and Dim a multiple of Heads where HeadDim is 0", c.Dim, c.Heads, c.HeadDim)
	case c.KVHeads < 0 || c.withDefaults().Heads%c.withDefaults().KVHeads != 0:
		return configError("AttentionConfig.KVHeads is %d: it must divide Heads = %d", c.KVHeads, c.Heads)
	}
	c = c.withDefaults()
	if c.Rotary != nil && c.Rotary.headDim != c.HeadDim {
		return configError("AttentionConfig.Rotary is for heads of %d elements: those of the attention have %d",
			c.Rotary.headDim, c.HeadDim)
	}
	if err := c.Scores.check("AttentionConfig"); err != nil {
		return err
	}
	width, ok := product(c.Heads, c.HeadDim)
	if !ok {
		return configError("AttentionConfig.Heads is %d and HeadDim %d: that is too large", c.Heads, c.HeadDim)
	}
	return checkMatrix("an attention's projection", int(width), c.Dim)
}

// Attention is causal self-attention (Vaswani et al., arXiv 1706.03762) with rotary
// positions and grouped queries (Ainslie et al., arXiv 2305.13245): Heads query heads
// share KVHeads heads of keys and values, in consecutive groups. Its four projections
// are linear layers with the options given; scores, softmax and their products are
// FP32. With Norms.QueryKey each head's query and key are normalized before they are rotated.
type Attention struct {
	Query, Key, Value, Output *Linear
	QueryNorm, KeyNorm        *RMSNorm // of heads; nil without Norms.QueryKey

	config AttentionConfig
	input  *commonInput // of query, key and value
	x      []float32    // what Forward was given
	ready  bool
	mixing

	raw    *rawHeads // queries and keys before their norms
	ownRaw rawHeads
}

// rawHeads are queries and keys before they are normalized.
type rawHeads struct{ q, k []float32 }

// NewAttention returns an attention whose weights are zero, to be filled in. They are
// named prefix+"q_proj.weight", "k_proj.weight", "v_proj.weight" and "o_proj.weight", biases
// "q_proj.bias" and so on, and there are "q_norm.weight", "k_norm.weight" and "sinks" where
// options and scores say so. Norms have an eps of 1e-5 here. The error is [ErrConfig].
func NewAttention(prefix string, c AttentionConfig, o Options) (*Attention, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	return newAttention(prefix, c.withDefaults(), defaultNormEps, o)
}

func newAttention(prefix string, c AttentionConfig, eps float64, o Options) (*Attention, error) {
	a := &Attention{
		config: c,
		input:  newCommonInput(o),
		mixing: newMixing(prefix, c.Dim, c.Rotary, c.Heads, c.KVHeads, c.HeadDim, c.HeadDim, c.Scores, o),
	}
	err := newLinears(prefix,
		linearSpec{&a.Query, "q_proj.weight", c.queryDim(), c.Dim, o, o.Biases.QueryKeyValue},
		linearSpec{&a.Key, "k_proj.weight", c.kvDim(), c.Dim, o, o.Biases.QueryKeyValue},
		linearSpec{&a.Value, "v_proj.weight", c.kvDim(), c.Dim, o, o.Biases.QueryKeyValue},
		linearSpec{&a.Output, "o_proj.weight", c.Dim, c.queryDim(), o.roundInput(), o.Biases.Output},
	)
	if err != nil {
		return nil, err
	}
	o.keepNorm(a.policy, a.Query, a.Key, a.Value)
	o.keepInput(a.Output, a.policy.Mixed)
	if o.Norms.QueryKey {
		a.QueryNorm = newRMSNorm(prefix+"q_norm.weight", c.HeadDim, eps, o)
		a.KeyNorm = newRMSNorm(prefix+"k_norm.weight", c.HeadDim, eps, o)
	}
	return a, nil
}

// Params returns the weights of the projections, each before its bias: query, key, value, output;
// then the gains of the norms of query and key, and the sinks.
func (a *Attention) Params() []*Param {
	params := paramsOf(a.linears()...)
	if a.QueryNorm != nil {
		params = append(params, a.QueryNorm.Gain, a.KeyNorm.Gain)
	}
	if a.Sinks != nil {
		params = append(params, a.Sinks)
	}
	return params
}

// linears returns the linear layers in the order of the forward pass.
func (a *Attention) linears() []*Linear { return []*Linear{a.Query, a.Key, a.Value, a.Output} }

// output returns the projection back to the residual stream.
func (a *Attention) output() *Linear { return a.Output }

// Forward writes the attention of x to y, both [batch·seq, dim], sequence after
// sequence; they must not overlap. Tokens see themselves and those before them in
// their sequence. The layer keeps x, which must stay as it is until
// [Attention.Backward], but with FP8 activations, of which it makes a copy in FP8.
func (a *Attention) Forward(ctx context.Context, y, x []float32, batch, seq int) error {
	a.ready = false
	if err := a.check(y, x, batch, seq); err != nil {
		return err
	}
	a.x = x
	q, k, v := a.begin(batch, seq)
	if err := a.project(ctx, q, k, v); err != nil {
		return err
	}
	err := a.attend(ctx, y, a.Output)
	a.ready = err == nil && a.shared.training()
	return err
}

// project writes queries, keys and values of what Forward was given.
func (a *Attention) project(ctx context.Context, q, k, v []float32) error {
	rows, x, rawQ, rawK := a.batch*a.seq, a.x, q, k
	if a.QueryNorm != nil {
		a.raw = choose(a.shared.training() && a.policy.Projections == Keep, &a.ownRaw, &a.scratch.rawHeads)
		rawQ, rawK = sized(&a.raw.q, len(q)), sized(&a.raw.k, len(k))
	}
	a.input.begin()
	if err := a.Query.forward(ctx, rawQ, x, rows, a.input); err != nil {
		return err
	}
	if err := a.Key.forward(ctx, rawK, x, rows, a.input); err != nil {
		return err
	}
	if a.QueryNorm != nil {
		if err := a.QueryNorm.Forward(ctx, q, rawQ); err != nil {
			return err
		}
		if err := a.KeyNorm.Forward(ctx, k, rawK); err != nil {
			return err
		}
	}
	if err := a.Value.forward(ctx, v, x, rows, a.input); err != nil {
		return err
	}
	if r := a.config.Rotary; r != nil {
		r.rotate(q, a.config.Heads, 0, a.seq, a.seq, a.workers, 1)
		r.rotate(k, a.config.KVHeads, 0, a.seq, a.seq, a.workers, 1)
	}
	return nil
}

// outputAgain writes again what Forward wrote; restore must have been asked for values.
func (a *Attention) outputAgain(ctx context.Context, y []float32) error {
	return a.mixing.outputAgain(ctx, y, a.Output)
}

// restore computes again what is not kept, unless that was done: for it, the input must be
// as it was.
func (a *Attention) restore(ctx context.Context, values bool) error {
	if a.restored {
		return nil
	}
	return a.shared.repeat(func() error {
		q, k, v := a.begin(a.batch, a.seq)
		if a.policy.Projections == Recompute {
			if err := a.project(ctx, q, k, v); err != nil {
				return err
			}
		}
		a.restored = true
		return a.mixing.restore(ctx, values, a.Output)
	})
}

// Backward takes the gradient dy of what the last Forward wrote. It writes that of x
// to dx, which must not overlap dy, and adds those of the weights to their Grad.
func (a *Attention) Backward(ctx context.Context, dx, dy []float32) error {
	rows := a.batch * a.seq
	if err := checkGradients(a.ready, a.layer, dx, dy, rows, a.config.Dim); err != nil {
		return err
	}
	a.ready = false
	if err := a.restore(ctx, false); err != nil {
		return err
	}
	if err := a.attendBackward(ctx, dy, a.Output); err != nil {
		return err
	}
	s := a.scratch
	if r := a.config.Rotary; r != nil {
		r.rotate(s.dq, a.config.Heads, 0, a.seq, a.seq, a.workers, -1)
		r.rotate(s.dk, a.config.KVHeads, 0, a.seq, a.seq, a.workers, -1)
	}
	dq, dk := s.dq, s.dk
	if a.QueryNorm != nil {
		dq, dk = sized(&s.dRaw.q, len(s.dq)), sized(&s.dRaw.k, len(s.dk))
		if err := a.QueryNorm.Backward(ctx, dq, s.dq); err != nil {
			return err
		}
		if err := a.KeyNorm.Backward(ctx, dk, s.dk); err != nil {
			return err
		}
	}
	a.input.begin()
	if err := a.Query.backward(ctx, dx, dq, a.input); err != nil {
		return err
	}
	part := sized(&s.part, len(dx))
	if err := a.Key.backward(ctx, part, dk, a.input); err != nil {
		return err
	}
	add(dx, dx, part, a.workers)
	if err := a.Value.backward(ctx, part, s.dv, a.input); err != nil {
		return err
	}
	add(dx, dx, part, a.workers)
	return nil
}

func (a *Attention) countActivations(n *ActivationBytes) {
	a.mixing.countActivations(n)
	if a.QueryNorm != nil {
		n.floats(a.QueryNorm.inverse, a.KeyNorm.inverse, a.ownRaw.q, a.ownRaw.k)
	}
}
