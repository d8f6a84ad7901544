package nn

import (
	"context"
	"strings"
)

// Block is one layer of a transformer: attention and MLP, each on a normalized copy of
// the residual stream and added to it. In a [Llama] whose Config says so MLA takes the place
// of Attention, and Experts that of MLP, which then is nil.
type Block struct {
	AttentionNorm *RMSNorm
	Attention     *Attention
	MLA           *MLA
	MLPNorm       *RMSNorm
	MLP           *MLP
	Experts       *Experts

	// AfterAttention and AfterMLP normalize the results of both before they are added; nil
	// without Norms.After.
	AfterAttention, AfterMLP *RMSNorm

	attention   attentionLayer // one of Attention and MLA
	feedForward feedForward    // one of MLP and Experts
	batch, seq  int
	ready       bool

	layer   string // its name in taps
	dim     int
	workers int
	shared  *Shared
	scratch *scratch
	rounder *resultRounder // of the residual stream

	attentionInput, mlpInput *[]float32 // normalized
	middle                   *[]float32 // the residual stream between attention and MLP
	attended                 *[]float32 // the result of attention, where a norm follows

	policy Policy
	own    struct { // memory
		attentionInput, mlpInput, middle []float32
		attended, fed                    []float32
	}
}

// attentionLayer is an attention in a block.
type attentionLayer interface {
	Forward(ctx context.Context, y, x []float32, batch, seq int) error
	Backward(ctx context.Context, dx, dy []float32) error
	Params() []*Param
	check(y, x []float32, batch, seq int) error
	linears() []*Linear
	output() *Linear
	countActivations(n *ActivationBytes)

	// restore computes again what is not kept for Backward, which else does it itself, and
	// where values is set the input of output. The input must be as it was.
	restore(ctx context.Context, values bool) error
	outputAgain(ctx context.Context, y []float32) error
}

// feedForward is what follows attention in a block. Its backward pass is that of scale times
// the loss, also where there is a balance loss.
type feedForward interface {
	forward(ctx context.Context, y, x []float32, batch, seq int) error
	backward(ctx context.Context, dx, dy []float32, scale float32) error
	Params() []*Param
	linears() []*Linear
	outputs() []*Linear
	countActivations(n *ActivationBytes)
}

// BlockConfig is the shape of a [Block].
type BlockConfig struct {
	AttentionConfig
	Hidden  int     // width of the MLP
	NormEps float64 // added to the mean square in RMSNorm; 0: 1e-5
}

// NewBlock returns a block whose matrices are zero, to be filled in. Parameters are
// named as in a Hugging Face Llama: prefix, such as "model.layers.0.", and then
// "input_layernorm.weight", "self_attn.q_proj.weight", "mlp.up_proj.weight" and so on; with
// Norms.After there are "post_self_attn_layernorm.weight" and "post_mlp_layernorm.weight", as in
// GLM-4. The error is [ErrConfig].
func NewBlock(prefix string, c BlockConfig, o Options) (*Block, error) {
	if c.NormEps == 0 {
		c.NormEps = defaultNormEps
	}
	if err := c.AttentionConfig.check(); err != nil {
		return nil, err
	}
	if err := checkMatrix(prefix+"mlp.up_proj.weight", c.Hidden, c.Dim); err != nil {
		return nil, err
	}
	if !validEps(c.NormEps) {
		return nil, configError("BlockConfig.NormEps is %v: it must be above 0 and at most 1", c.NormEps)
	}
	o, err := o.complete("Options")
	if err != nil {
		return nil, err
	}
	c.AttentionConfig = c.AttentionConfig.withDefaults()
	return newBlock(prefix, c, o)
}

func newBlock(prefix string, c BlockConfig, o Options) (*Block, error) {
	b := newEmptyBlock(prefix, c.Dim, c.NormEps, o)
	if err := b.addAttention(prefix, c.AttentionConfig, c.NormEps, o); err != nil {
		return nil, err
	}
	return b, b.addMLP(prefix, c.Dim, c.Hidden, o)
}

// newEmptyBlock returns a block without attention and feed-forward.
func newEmptyBlock(prefix string, dim int, eps float64, o Options) *Block {
	b := &Block{
		AttentionNorm: newRMSNorm(prefix+"input_layernorm.weight", dim, eps, o),
		MLPNorm:       newRMSNorm(prefix+"post_attention_layernorm.weight", dim, eps, o),
		layer:         strings.TrimSuffix(prefix, "."),
		dim:           dim, workers: o.Workers, shared: o.Shared, scratch: &o.Shared.scratch,
		policy:  o.keeping(),
		rounder: newResultRounder(o.Operators.Residual, o.Workers),
	}
	if o.Norms.After {
		b.AfterAttention = newRMSNorm(prefix+"post_self_attn_layernorm.weight", dim, eps, o)
		b.AfterMLP = newRMSNorm(prefix+"post_mlp_layernorm.weight", dim, eps, o)
	}
	return b
}

func (b *Block) addAttention(prefix string, c AttentionConfig, eps float64, o Options) (err error) {
	b.Attention, err = newAttention(prefix+"self_attn.", c, eps, o)
	b.attention = b.Attention
	return err
}

func (b *Block) addMLA(prefix string, c MLAConfig, o Options) (err error) {
	b.MLA, err = newMLA(prefix+"self_attn.", c, o)
	b.attention = b.MLA
	return err
}

func (b *Block) addMLP(prefix string, dim, hidden int, o Options) (err error) {
	b.MLP, err = newMLP(prefix+"mlp.", dim, hidden, o)
	b.feedForward = b.MLP
	return err
}

func (b *Block) addExperts(prefix string, c ExpertsConfig, o Options) (err error) {
	b.Experts, err = newExperts(prefix+"mlp.", c, o)
	b.feedForward = b.Experts
	return err
}

// Params returns the parameters in the order of the forward pass.
func (b *Block) Params() []*Param {
	params := append([]*Param{b.AttentionNorm.Gain}, b.attention.Params()...)
	if b.AfterAttention != nil {
		params = append(params, b.AfterAttention.Gain)
	}
	params = append(append(params, b.MLPNorm.Gain), b.feedForward.Params()...)
	if b.AfterMLP != nil {
		params = append(params, b.AfterMLP.Gain)
	}
	return params
}

// linears returns the linear layers in the order of the forward pass, without a router's.
func (b *Block) linears() []*Linear {
	return append(b.attention.linears(), b.feedForward.linears()...)
}

// Forward writes the residual stream after the block to y, given that before it, x,
// both [batch·seq, dim], sequence after sequence; they must not overlap. It keeps x,
// which must stay as it is until [Block.Backward].
func (b *Block) Forward(ctx context.Context, y, x []float32, batch, seq int) error {
	b.ready = false
	if err := b.attention.check(y, x, batch, seq); err != nil {
		return err
	}
	training, s := b.shared.training(), b.scratch
	b.attentionInput = choose(training && b.policy.Norms == Keep, &b.own.attentionInput, &s.normed)
	b.mlpInput = choose(training && b.policy.Norms == Keep, &b.own.mlpInput, &s.mlpNormed)
	b.middle = choose(training && b.policy.Middle == Keep, &b.own.middle, &s.middle)
	b.attended = choose(training && b.policy.Middle == Keep, &b.own.attended, &s.attended)
	rows := batch * seq
	branch := sized(&b.scratch.branch, len(x))
	normed := sized(b.attentionInput, len(x))
	if err := b.AttentionNorm.Forward(ctx, normed, x); err != nil {
		return err
	}
	attended := before(b.AfterAttention, b.attended, branch)
	if err := b.attention.Forward(ctx, attended, normed, batch, seq); err != nil {
		return err
	}
	if err := after(ctx, b.AfterAttention, branch, attended); err != nil {
		return err
	}
	middle := b.addBranch(x, branch)
	b.shared.tap(b.layer, ".middle", middle, rows)

	normed = sized(b.mlpInput, len(x))
	if err := b.MLPNorm.Forward(ctx, normed, middle); err != nil {
		return err
	}
	fed := before(b.AfterMLP, choose(training, &b.own.fed, &s.attended), branch)
	if err := b.feedForward.forward(ctx, fed, normed, batch, seq); err != nil {
		return err
	}
	if err := after(ctx, b.AfterMLP, branch, fed); err != nil {
		return err
	}
	add(y, middle, branch, b.workers)
	b.rounder.round(y, b.dim)
	b.shared.tap(b.layer, ".output", y, rows)
	b.batch, b.seq, b.ready = batch, seq, training
	return nil
}

// before returns where the result goes that a norm, if there is one, makes the branch of.
func before(norm *RMSNorm, own *[]float32, branch []float32) []float32 {
	if norm == nil {
		return branch
	}
	return sized(own, len(branch))
}

// after makes a branch of a result by a norm; without one the result is the branch.
func after(ctx context.Context, norm *RMSNorm, branch, result []float32) error {
	if norm == nil {
		return nil
	}
	return norm.Forward(ctx, branch, result)
}

// beforeBackward is the backward pass of after: it returns the gradient of the result.
func (b *Block) beforeBackward(ctx context.Context, norm *RMSNorm, dBranch []float32) ([]float32, error) {
	if norm == nil {
		return dBranch, nil
	}
	d := sized(&b.scratch.dResult, len(dBranch))
	return d, norm.Backward(ctx, d, dBranch)
}

// addBranch returns the residual stream after attention.
func (b *Block) addBranch(x, branch []float32) []float32 {
	middle := sized(b.middle, len(x))
	add(middle, x, branch, b.workers)
	b.rounder.round(middle, b.dim)
	return middle
}

// restoreMLP computes again what the backward passes of the MLP and of its norm read of
// others and is not kept.
func (b *Block) restoreMLP(ctx context.Context) error {
	p := b.policy
	if p.Middle == Recompute {
		if err := b.restoreAttention(ctx, true); err != nil {
			return err
		}
		x := b.AttentionNorm.x
		branch := sized(&b.scratch.branch, len(x))
		attended := before(b.AfterAttention, b.attended, branch)
		if err := b.attention.outputAgain(ctx, attended); err != nil {
			return err
		}
		if err := after(ctx, b.AfterAttention, branch, attended); err != nil {
			return err
		}
		b.MLPNorm.x = b.addBranch(x, branch)
	}
	if p.Norms == Recompute || p.Norms == KeepFP8 && p.Branches == Recompute {
		return b.MLPNorm.Forward(ctx, *b.mlpInput, b.MLPNorm.x)
	}
	return nil
}

// restoreAttention computes again what the backward pass of attention reads and is not kept.
func (b *Block) restoreAttention(ctx context.Context, values bool) error {
	p := b.policy
	fromInput := p.Projections == Recompute || p.Latents == Recompute
	if p.Norms == Recompute || p.Norms == KeepFP8 && fromInput {
		if err := b.AttentionNorm.Forward(ctx, *b.attentionInput, b.AttentionNorm.x); err != nil {
			return err
		}
	}
	return b.attention.restore(ctx, values)
}

// Backward takes the gradient dy of what the last Forward wrote. It writes that of x
// to dx, which may be dy, and adds those of the parameters to their Grad.
func (b *Block) Backward(ctx context.Context, dx, dy []float32) error {
	return b.backward(ctx, dx, dy, 1)
}

// backward is Backward of scale times the loss.
func (b *Block) backward(ctx context.Context, dx, dy []float32, scale float32) error {
	rows := b.batch * b.seq
	if err := checkGradients(b.ready, b.layer, dx, dy, rows, b.dim); err != nil {
		return err
	}
	b.ready = false
	b.shared.tap(b.layer, ".gradient", dy, rows)
	dBranch, dNormed := sized(&b.scratch.dBranch, len(dy)), sized(&b.scratch.dNormed, len(dy))
	err := b.shared.repeat(func() error { return b.restoreMLP(ctx) })
	if err != nil {
		return err
	}
	d, err := b.beforeBackward(ctx, b.AfterMLP, dy)
	if err != nil {
		return err
	}
	if err := b.feedForward.backward(ctx, dBranch, d, scale); err != nil {
		return err
	}
	if err := b.MLPNorm.Backward(ctx, dNormed, dBranch); err != nil {
		return err
	}
	add(dx, dy, dNormed, b.workers)
	b.rounder.round(dx, b.dim)
	b.shared.tap(b.layer, ".middle_gradient", dx, rows)

	if b.policy.Middle != Recompute {
		err := b.shared.repeat(func() error { return b.restoreAttention(ctx, false) })
		if err != nil {
			return err
		}
	}
	if d, err = b.beforeBackward(ctx, b.AfterAttention, dx); err != nil {
		return err
	}
	if err := b.attention.Backward(ctx, dBranch, d); err != nil {
		return err
	}
	if err := b.AttentionNorm.Backward(ctx, dNormed, dBranch); err != nil {
		return err
	}
	add(dx, dx, dNormed, b.workers)
	b.rounder.round(dx, b.dim)
	return nil
}

func (b *Block) countActivations(n *ActivationBytes) {
	n.floats(b.AttentionNorm.inverse, b.MLPNorm.inverse)
	if b.policy.Middle == Keep {
		n.floats(*b.middle)
	}
	if b.AfterAttention != nil {
		n.floats(b.AfterAttention.inverse, b.AfterMLP.inverse, b.own.attended, b.own.fed)
	}
	if b.policy.Norms == Keep {
		n.floats(*b.attentionInput, *b.mlpInput)
	}
	b.attention.countActivations(n)
	b.feedForward.countActivations(n)
	n.kept(b.linears())
}
