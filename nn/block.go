package nn

import (
	"context"
	"strings"
)

// Block is one layer of a transformer: attention and MLP, each on a normalized copy of
// the residual stream and added to it.
type Block struct {
	AttentionNorm *RMSNorm
	Attention     *Attention
	MLPNorm       *RMSNorm
	MLP           *MLP

	layer   string // its name in taps
	dim     int
	workers int
	shared  *Shared
	scratch *scratch
	rounder *resultRounder // of the residual stream

	attentionInput, mlpInput *[]float32 // normalized
	middle                   *[]float32 // the residual stream between attention and MLP

	keepsInputs bool
	own         struct{ attentionInput, mlpInput, middle []float32 } // memory
}

// BlockConfig is the shape of a [Block].
type BlockConfig struct {
	AttentionConfig
	Hidden  int     // width of the MLP
	NormEps float64 // added to the mean square in RMSNorm; 0: 1e-5
}

// NewBlock returns a block whose matrices are zero, to be filled in. Parameters are
// named as in a Hugging Face Llama: prefix, such as "model.layers.0.", and then
// "input_layernorm.weight", "self_attn.q_proj.weight", "mlp.up_proj.weight" and so on.
// The error is [ErrConfig].
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

func newBlock(prefix string, c BlockConfig, o Options) (b *Block, err error) {
	b = &Block{
		AttentionNorm: newRMSNorm(prefix+"input_layernorm.weight", c.Dim, c.NormEps, o),
		MLPNorm:       newRMSNorm(prefix+"post_attention_layernorm.weight", c.Dim, c.NormEps, o),
		layer:         strings.TrimSuffix(prefix, "."),
		dim:           c.Dim, workers: o.Workers, shared: o.Shared, scratch: &o.Shared.scratch,
		keepsInputs: o.Activations.keepsInputs(),
		rounder:     newResultRounder(o.Operators.Residual, o.Workers),
	}
	if b.Attention, err = newAttention(prefix+"self_attn.", c.AttentionConfig, o); err != nil {
		return nil, err
	}
	b.MLP, err = newMLP(prefix+"mlp.", c.Dim, c.Hidden, o)
	return b, err
}

// Params returns the parameters in the order of the forward pass.
func (b *Block) Params() []*Param {
	params := append([]*Param{b.AttentionNorm.Gain}, b.Attention.Params()...)
	return append(append(params, b.MLPNorm.Gain), b.MLP.Params()...)
}

// linears returns the linear layers in the order of the forward pass.
func (b *Block) linears() []*Linear {
	a, m := b.Attention, b.MLP
	return []*Linear{a.Query, a.Key, a.Value, a.Output, m.Gate, m.Up, m.Down}
}

// Forward writes the residual stream after the block to y, given that before it, x,
// both [batch·seq, dim], sequence after sequence; they must not overlap. It keeps x,
// which must stay as it is until [Block.Backward].
func (b *Block) Forward(ctx context.Context, y, x []float32, batch, seq int) error {
	if err := b.Attention.check(y, x, batch, seq); err != nil {
		return err
	}
	training, s := b.shared.training(), b.scratch
	b.attentionInput = choose(training && b.keepsInputs, &b.own.attentionInput, &s.normed)
	b.mlpInput = choose(training && b.keepsInputs, &b.own.mlpInput, &s.normed)
	b.middle = choose(training, &b.own.middle, &s.middle)
	rows := batch * seq
	branch := sized(&b.scratch.branch, len(x))
	normed := sized(b.attentionInput, len(x))
	if err := b.AttentionNorm.Forward(ctx, normed, x); err != nil {
		return err
	}
	if err := b.Attention.Forward(ctx, branch, normed, batch, seq); err != nil {
		return err
	}
	middle := sized(b.middle, len(x))
	add(middle, x, branch, b.workers)
	b.rounder.round(middle, b.dim)
	b.shared.tap(b.layer, ".middle", middle, rows)

	normed = sized(b.mlpInput, len(x))
	if err := b.MLPNorm.Forward(ctx, normed, middle); err != nil {
		return err
	}
	if err := b.MLP.Forward(ctx, branch, normed, rows); err != nil {
		return err
	}
	add(y, middle, branch, b.workers)
	b.rounder.round(y, b.dim)
	b.shared.tap(b.layer, ".output", y, rows)
	return nil
}

// Backward takes the gradient dy of what the last Forward wrote. It writes that of x
// to dx, which may be dy, and adds those of the parameters to their Grad.
func (b *Block) Backward(ctx context.Context, dx, dy []float32) error {
	if !b.MLP.ready {
		return noForward(b.layer)
	}
	rows := b.MLP.rows
	if len(dx) != rows*b.dim || len(dy) != len(dx) {
		return inputError("%s: gradients of %d input and %d output elements are not the %d rows of Forward", b.layer, len(dx), len(dy), rows)
	}
	b.shared.tap(b.layer, ".gradient", dy, rows)
	dBranch, dNormed := sized(&b.scratch.dBranch, len(dy)), sized(&b.scratch.dNormed, len(dy))
	if err := b.MLP.Backward(ctx, dBranch, dy); err != nil {
		return err
	}
	if err := b.MLPNorm.Backward(ctx, dNormed, dBranch); err != nil {
		return err
	}
	add(dx, dy, dNormed, b.workers)
	b.rounder.round(dx, b.dim)
	b.shared.tap(b.layer, ".middle_gradient", dx, rows)

	if err := b.Attention.Backward(ctx, dBranch, dx); err != nil {
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
	n.floats(b.AttentionNorm.inverse, *b.middle, b.MLPNorm.inverse)
	if b.keepsInputs {
		n.floats(*b.attentionInput, *b.mlpInput)
	}
	b.Attention.countActivations(n)
	b.MLP.countActivations(n)
	n.kept(b.linears())
}
