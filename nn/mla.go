package nn

import (
	"context"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/parallel"
)

// MLAConfig is the shape of an [MLA]. DeepSeek-V3 has Dim 7168, Heads 128, QueryRank 1536,
// KVRank 512, NoPE 128, RoPE 64 and Value 128.
type MLAConfig struct {
	Dim   int `json:"-"` // of what goes in and comes out
	Heads int `json:"-"`

	QueryRank int `json:"query_rank"` // of the latent that queries are made of; 0: they are made of the input
	KVRank    int `json:"kv_rank"`    // of the latent that keys and values are made of

	NoPE  int `json:"nope"`  // of a head's query and key without position
	RoPE  int `json:"rope"`  // of a head's query and of the one key that all heads share, with position; even
	Value int `json:"value"` // of a head's value

	Rotary  *Rotary `json:"-"`                  // positions, of heads of RoPE; nil: none
	NormEps float64 `json:"norm_eps,omitempty"` // of the norms of latents; 0: 1e-5
	Scores  `json:"-"`
}

func (c MLAConfig) withDefaults() MLAConfig {
	if c.NormEps == 0 {
		c.NormEps = defaultNormEps
	}
	return c
}

func (c MLAConfig) check() error {
	c = c.withDefaults()
	for _, f := range []struct {
		name  string
		value int
	}{
		{"Dim", c.Dim}, {"Heads", c.Heads}, {"KVRank", c.KVRank},
		{"NoPE", c.NoPE}, {"RoPE", c.RoPE}, {"Value", c.Value},
	} {
		if f.value <= 0 {
			return configError("MLAConfig.%s is %d: it must be positive", f.name, f.value)
		}
	}
	switch {
	case c.QueryRank < 0:
		return configError("MLAConfig.QueryRank is %d: it must not be negative", c.QueryRank)
	case c.RoPE%2 != 0:
		return configError("MLAConfig.RoPE is %d: it must be even", c.RoPE)
	case c.Rotary != nil && c.Rotary.headDim != c.RoPE:
		return configError("MLAConfig.Rotary is for heads of %d elements: RoPE is %d", c.Rotary.headDim, c.RoPE)
	case !validEps(c.NormEps):
		return configError("MLAConfig.NormEps is %v: it must be above 0 and at most 1", c.NormEps)
	}
	if err := c.Scores.check("MLAConfig"); err != nil {
		return err
	}
	for _, p := range c.shapes(Biases{}) {
		if err := checkMatrix(p.Name, p.Rows, p.Cols); err != nil {
			return err
		}
	}
	return nil
}

// shapes are those of the parameters, in their order.
func (c MLAConfig) shapes(b Biases) []Shape {
	key := c.NoPE + c.RoPE
	query := linearShapes("q_proj", c.Heads*key, c.Dim, false)
	if c.QueryRank > 0 {
		query = slices.Concat(linearShapes("q_a_proj", c.QueryRank, c.Dim, b.QueryKeyValue),
			[]Shape{{"q_a_layernorm.weight", 1, c.QueryRank}, {"q_b_proj.weight", c.Heads * key, c.QueryRank}})
	}
	return slices.Concat(query, linearShapes("kv_a_proj_with_mqa", c.KVRank+c.RoPE, c.Dim, b.QueryKeyValue),
		[]Shape{{"kv_a_layernorm.weight", 1, c.KVRank}, {"kv_b_proj.weight", c.Heads * (c.NoPE + c.Value), c.KVRank}},
		linearShapes("o_proj", c.Dim, c.Heads*c.Value, b.Output), c.sinks(c.Heads))
}

// MLA is multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), causal:
// queries are made of a normalized latent of low rank, keys and values of another, which
// would be all that is cached. Each head's query and key have NoPE elements without
// position and RoPE with it; those of the key are made of the input and are the same in all
// heads. Scores are divided by √(NoPE+RoPE). Projections are linear layers with the options
// given; norms, scores, softmax and their products are FP32, as in [Attention].
type MLA struct {
	QueryDown *Linear  // to the latent; nil without a QueryRank
	QueryNorm *RMSNorm // nil without a QueryRank
	Query     *Linear  // of each head NoPE elements, then RoPE
	KVDown    *Linear  // to the latent, and the RoPE elements of the key
	KVNorm    *RMSNorm
	KV        *Linear // of each head NoPE elements of the key, then the value
	Output    *Linear

	config MLAConfig
	input  *commonInput // of what is made of the input
	x      []float32    // what Forward was given
	ready  bool
	mixing

	query, kv latent

	// The part of keys with positions. It is kept where keys are computed again from latents
	// that are kept.
	sharedKey    *[]float32
	ownSharedKey []float32
}

// latent is what attention makes queries, or keys and values, of: memory of it.
type latent struct {
	raw, normed *[]float32
	own         latentMemory
}

type latentMemory struct{ raw, normed []float32 }

// begin sizes memory of rows of so many elements: raw, which the norm's backward pass
// needs, and normed.
func (l *latent) begin(a *mixing, shared *latentMemory, rank int) {
	training, n := a.shared.training(), a.batch*a.seq*rank
	l.raw = choose(training && a.policy.Latents == Keep, &l.own.raw, &shared.raw)
	l.normed = choose(training && a.policy.Norms == Keep, &l.own.normed, &shared.normed)
	sized(l.raw, n)
	sized(l.normed, n)
}

// NewMLA returns an MLA whose matrices are zero, to be filled in. Its parameters have the
// names of DeepSeek-V3, behind prefix: "q_a_proj.weight", "q_a_layernorm.weight" and
// "q_b_proj.weight", or "q_proj.weight" without a QueryRank; "kv_a_proj_with_mqa.weight",
// "kv_a_layernorm.weight", "kv_b_proj.weight" and "o_proj.weight". Biases.QueryKeyValue are of
// the projections from the input to latents, as in DeepSeek-V3. The error is [ErrConfig].
func NewMLA(prefix string, c MLAConfig, o Options) (*MLA, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	return newMLA(prefix, c.withDefaults(), o)
}

func newMLA(prefix string, c MLAConfig, o Options) (*MLA, error) {
	a := &MLA{
		config: c,
		input:  newCommonInput(o),
		mixing: newMixing(prefix, c.Dim, c.Rotary, c.Heads, c.Heads, c.NoPE+c.RoPE, c.Value, c.Scores, o),
	}
	layers := map[string]**Linear{
		"q_proj": &a.Query, "q_a_proj": &a.QueryDown, "q_b_proj": &a.Query,
		"kv_a_proj_with_mqa": &a.KVDown, "kv_b_proj": &a.KV, "o_proj": &a.Output,
	}
	norms := map[string]**RMSNorm{"q_a_layernorm": &a.QueryNorm, "kv_a_layernorm": &a.KVNorm}
	for _, s := range c.shapes(o.Biases) {
		name, options := prefix+s.Name, o
		layer, kind, _ := strings.Cut(s.Name, ".")
		to := layers[layer]
		switch {
		case norms[layer] != nil:
			*norms[layer] = newRMSNorm(name, s.Cols, c.NormEps, o)
			continue
		case kind == "bias":
			(*to).addBiasIf(true)
			continue
		case to == nil: // the sinks
			continue
		case to == &a.Output:
			options = o.roundInput()
		}
		var err error
		if *to, err = newLinear(name, o.Shared.newMatrix(name, s.Rows, s.Cols), options); err != nil {
			return nil, err
		}
	}
	o.keepNorm(a.policy, a.Query, a.KVDown, a.KV)
	if a.QueryDown != nil {
		o.keepNorm(a.policy, a.QueryDown)
	}
	o.keepInput(a.Output, a.policy.Mixed)
	return a, nil
}

// linears returns the linear layers in the order of the forward pass.
func (a *MLA) linears() []*Linear {
	layers := []*Linear{a.Query, a.KVDown, a.KV, a.Output}
	if a.QueryDown != nil {
		layers = append([]*Linear{a.QueryDown}, layers...)
	}
	return layers
}

// output returns the projection back to the residual stream.
func (a *MLA) output() *Linear { return a.Output }

// Params returns the parameters in the order of the forward pass.
func (a *MLA) Params() (params []*Param) {
	if a.QueryDown != nil {
		params = append(paramsOf(a.QueryDown), a.QueryNorm.Gain)
	}
	params = append(append(params, paramsOf(a.Query, a.KVDown)...), a.KVNorm.Gain)
	params = append(params, paramsOf(a.KV, a.Output)...)
	if a.Sinks != nil {
		params = append(params, a.Sinks)
	}
	return params
}

// Forward writes the attention of x to y, both [batch·seq, dim], sequence after
// sequence; they must not overlap. Tokens see themselves and those before them in
// their sequence. The layer keeps x, which must stay as it is until
// [MLA.Backward], but with FP8 activations, of which it makes a copy in FP8.
func (a *MLA) Forward(ctx context.Context, y, x []float32, batch, seq int) error {
	a.ready = false
	if err := a.check(y, x, batch, seq); err != nil {
		return err
	}
	a.x = x
	q, k, v := a.begin(batch, seq)
	if err := a.compress(ctx); err != nil {
		return err
	}
	if err := a.project(ctx, q, k, v); err != nil {
		return err
	}
	err := a.attend(ctx, y, a.Output)
	a.ready = err == nil && a.shared.training()
	return err
}

// begin begins a forward pass and returns memory of queries, keys and values.
func (a *MLA) begin(batch, seq int) (q, k, v []float32) {
	q, k, v = a.mixing.begin(batch, seq)
	a.input.begin()
	keepsKey := a.policy.Latents == Keep && a.policy.Projections == Recompute
	a.sharedKey = choose(a.shared.training() && keepsKey, &a.ownSharedKey, &a.scratch.sharedKey)
	sized(a.sharedKey, batch*seq*a.config.RoPE)
	a.kv.begin(&a.mixing, &a.scratch.kvLatent, a.config.KVRank)
	if a.QueryDown != nil {
		a.query.begin(&a.mixing, &a.scratch.queryLatent, a.config.QueryRank)
	}
	return q, k, v
}

// compress computes latents and the rotated part of keys.
func (a *MLA) compress(ctx context.Context) error {
	rows, c := a.batch*a.seq, a.config
	if a.QueryDown != nil {
		if err := a.QueryDown.forward(ctx, *a.query.raw, a.x, rows, a.input); err != nil {
			return err
		}
	}
	down, shared := sized(&a.scratch.latent, rows*(c.KVRank+c.RoPE)), *a.sharedKey
	if err := a.KVDown.forward(ctx, down, a.x, rows, a.input); err != nil {
		return err
	}
	moveColumns(*a.kv.raw, 0, c.KVRank, down, 0, c.KVRank+c.RoPE, c.KVRank, rows, a.workers)
	moveColumns(shared, 0, c.RoPE, down, c.KVRank, c.KVRank+c.RoPE, c.RoPE, rows, a.workers)
	if r := c.Rotary; r != nil {
		r.rotate(shared, 1, 0, a.seq, a.seq, a.workers, 1)
	}
	return nil
}

// normalize computes the norms of latents.
func (a *MLA) normalize(ctx context.Context) error {
	if a.QueryDown != nil {
		if err := a.QueryNorm.Forward(ctx, *a.query.normed, *a.query.raw); err != nil {
			return err
		}
	}
	return a.KVNorm.Forward(ctx, *a.kv.normed, *a.kv.raw)
}

// project writes the queries, keys and values of latents.
func (a *MLA) project(ctx context.Context, q, k, v []float32) error {
	rows, c := a.batch*a.seq, a.config
	if err := a.normalize(ctx); err != nil {
		return err
	}
	if err := a.queries(ctx, q, rows); err != nil {
		return err
	}
	a.rotateQueries(q, 1)
	up := sized(&a.scratch.keysValues, rows*c.Heads*(c.NoPE+c.Value))
	if err := a.KV.Forward(ctx, up, *a.kv.normed, rows); err != nil {
		return err
	}
	a.spread(k, v, up, *a.sharedKey)
	return nil
}

// outputAgain writes again what Forward wrote; restore must have been asked for values.
func (a *MLA) outputAgain(ctx context.Context, y []float32) error {
	return a.mixing.outputAgain(ctx, y, a.Output)
}

// restore computes again what is not kept, unless that was done: for it, the input must be
// as it was.
func (a *MLA) restore(ctx context.Context, values bool) error {
	if a.restored {
		return nil
	}
	return a.shared.repeat(func() error {
		q, k, v := a.begin(a.batch, a.seq)
		if a.policy.Latents == Recompute {
			if err := a.compress(ctx); err != nil {
				return err
			}
		}
		switch {
		case a.policy.Projections == Recompute:
			if err := a.project(ctx, q, k, v); err != nil {
				return err
			}
		case a.policy.Norms == Recompute:
			if err := a.normalize(ctx); err != nil {
				return err
			}
		}
		a.restored = true
		return a.mixing.restore(ctx, values, a.Output)
	})
}

// queries writes queries to q, without their positions.
func (a *MLA) queries(ctx context.Context, q []float32, rows int) error {
	if a.QueryDown == nil {
		return a.Query.forward(ctx, q, a.x, rows, a.input)
	}
	return a.Query.Forward(ctx, q, *a.query.normed, rows)
}

// moveColumns copies cols columns of src, which has srcCols, from one on to dst.
func moveColumns(dst []float32, to, dstCols int, src []float32, from, srcCols, cols, rows, workers int) {
	parallel.For(rows, max(elementGrain/max(cols, 1), 1), workers, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			copy(dst[r*dstCols+to:][:cols], src[r*srcCols+from:][:cols])
		}
	})
}

// spread makes keys and values of what KV gave and of the key that heads share.
func (a *MLA) spread(k, v, up, shared []float32) {
	c := a.config
	key, both := c.NoPE+c.RoPE, c.NoPE+c.Value
	a.eachHead(func(row, i int) {
		copy(k[i*key:], up[i*both:][:c.NoPE])
		copy(k[i*key+c.NoPE:], shared[row*c.RoPE:][:c.RoPE])
		copy(v[i*c.Value:], up[i*both+c.NoPE:][:c.Value])
	})
}

// eachHead calls do for each row, and each of its heads by its index among those of all.
func (a *MLA) eachHead(do func(row, i int)) {
	heads := a.config.Heads
	parallel.For(a.batch*a.seq, max(elementGrain/(heads*a.keyDim), 1), a.workers, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			for h := range heads {
				do(row, row*heads+h)
			}
		}
	})
}

// rotateQueries rotates the last elements of each head's query by the angles times sign.
func (a *MLA) rotateQueries(q []float32, sign float32) {
	if r := a.config.Rotary; r != nil {
		a.eachHead(func(row, i int) {
			r.rotateHead(q[i*a.keyDim+a.config.NoPE:][:a.config.RoPE], row%a.seq, a.seq, sign)
		})
	}
}

// Backward takes the gradient dy of what the last Forward wrote. It writes that of x
// to dx, which must not overlap dy, and adds those of the parameters to their Grad.
func (a *MLA) Backward(ctx context.Context, dx, dy []float32) error {
	rows, c := a.batch*a.seq, a.config
	if err := checkGradients(a.ready, a.layer, dx, dy, rows, c.Dim); err != nil {
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
	a.rotateQueries(s.dq, -1)
	a.input.begin()
	if err := a.queriesBackward(ctx, dx, rows); err != nil {
		return err
	}
	dUp, dShared := sized(&s.keysValues, rows*c.Heads*(c.NoPE+c.Value)), sized(&s.sharedKey, rows*c.RoPE)
	a.gather(dUp, dShared)
	if r := c.Rotary; r != nil {
		r.rotate(dShared, 1, 0, a.seq, a.seq, a.workers, -1)
	}
	dNormed, dRaw := sized(&s.dLatentNormed, rows*c.KVRank), sized(&s.dLatent, rows*c.KVRank)
	if err := a.KV.Backward(ctx, dNormed, dUp); err != nil {
		return err
	}
	if err := a.KVNorm.Backward(ctx, dRaw, dNormed); err != nil {
		return err
	}
	dDown := sized(&s.latent, rows*(c.KVRank+c.RoPE))
	moveColumns(dDown, 0, c.KVRank+c.RoPE, dRaw, 0, c.KVRank, c.KVRank, rows, a.workers)
	moveColumns(dDown, c.KVRank, c.KVRank+c.RoPE, dShared, 0, c.RoPE, c.RoPE, rows, a.workers)
	part := sized(&s.part, len(dx))
	if err := a.KVDown.backward(ctx, part, dDown, a.input); err != nil {
		return err
	}
	add(dx, dx, part, a.workers)
	return nil
}

// queriesBackward writes to dx what the gradients of queries without positions make.
func (a *MLA) queriesBackward(ctx context.Context, dx []float32, rows int) error {
	s := a.scratch
	if a.QueryDown == nil {
		return a.Query.backward(ctx, dx, s.dq, a.input)
	}
	n := rows * a.config.QueryRank
	dNormed, dRaw := sized(&s.dLatentNormed, n), sized(&s.dLatent, n)
	if err := a.Query.Backward(ctx, dNormed, s.dq); err != nil {
		return err
	}
	if err := a.QueryNorm.Backward(ctx, dRaw, dNormed); err != nil {
		return err
	}
	return a.QueryDown.backward(ctx, dx, dRaw, a.input)
}

// gather is the backward pass of spread. The key that heads share has the sum of their
// gradients, in the order of the heads.
func (a *MLA) gather(dUp, dShared []float32) {
	c, s := a.config, a.scratch
	key, both := c.NoPE+c.RoPE, c.NoPE+c.Value
	clear(dShared)
	a.eachHead(func(row, i int) {
		copy(dUp[i*both:], s.dk[i*key:][:c.NoPE])
		copy(dUp[i*both+c.NoPE:], s.dv[i*c.Value:][:c.Value])
		to := dShared[row*c.RoPE:][:c.RoPE]
		addTo(to, to, s.dk[i*key+c.NoPE:])
	})
}

func (a *MLA) countActivations(n *ActivationBytes) {
	a.mixing.countActivations(n)
	n.floats(a.ownSharedKey)
	for _, l := range []struct {
		latent
		norm *RMSNorm
	}{{a.kv, a.KVNorm}, {a.query, a.QueryNorm}} {
		if l.norm == nil {
			continue
		}
		n.floats(l.norm.inverse)
		if a.policy.Latents == Keep {
			n.floats(*l.raw)
		}
		if a.policy.Norms == Keep {
			n.floats(*l.normed)
		}
	}
}
