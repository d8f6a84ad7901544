package nn

import "fmt"

// block is one layer: attention and MLP, each on a normalized copy of the
// residual stream and added to it.
type block struct {
	attentionNorm *rmsNorm
	attention     *attention
	mlpNorm       *rmsNorm
	mlp           *mlp
	format        ActivationFormat
	inputs        *inputs
	workers       int

	middle, out []float32
}

func newBlock(layer int, rope *rope, cfg Config, s *scratch) *block {
	prefix := fmt.Sprintf("model.layers.%d.", layer)
	in := s.inputsFor(cfg.Activations)
	b := &block{
		attentionNorm: newRMSNorm(prefix+"input_layernorm.weight", cfg),
		attention:     newAttention(prefix+"self_attn.", rope, cfg, in, s),
		mlpNorm:       newRMSNorm(prefix+"post_attention_layernorm.weight", cfg),
		mlp:           newMLP(prefix+"mlp.", cfg, in, s),
		format:        cfg.Activations,
		inputs:        in,
		workers:       cfg.Workers,
	}
	b.attentionNorm.out, b.attentionNorm.dx = &in.attention, &s.dNormed
	b.mlpNorm.out, b.mlpNorm.dx = &in.mlp, &s.dNormed
	return b
}

// linears returns the linear layers in the order of the forward pass.
func (b *block) linears() []*Linear {
	a, m := b.attention, b.mlp
	return []*Linear{a.query, a.key, a.value, a.output, m.gate, m.up, m.down}
}

// params returns the parameters of the layer in the order of the forward pass.
func (b *block) params() []*Param {
	return []*Param{
		b.attentionNorm.gain,
		b.attention.query.Weight, b.attention.key.Weight, b.attention.value.Weight, b.attention.output.Weight,
		b.mlpNorm.gain,
		b.mlp.gate.Weight, b.mlp.up.Weight, b.mlp.down.Weight,
	}
}

// forward returns a slice like x that stays valid until the next call. It keeps
// x, which must stay as it is until backward.
func (b *block) forward(x []float32, batch, seq int) ([]float32, error) {
	branch, err := b.attention.forward(b.attentionNorm.forward(x), batch, seq)
	if err != nil {
		return nil, err
	}
	middle := sized(&b.middle, len(x))
	add(middle, x, branch, b.workers)

	branch, err = b.mlp.forward(b.mlpNorm.forward(middle), batch*seq)
	if err != nil {
		return nil, err
	}
	out := sized(&b.out, len(x))
	add(out, middle, branch, b.workers)
	return out, nil
}

// keep keeps what backward needs as the configuration says, after forward: the
// next layer overwrites what is shared.
func (b *block) keep() error {
	if b.format == ActivationsFP32 {
		return nil
	}
	if err := b.attention.keep(); err != nil {
		return err
	}
	return b.mlp.keep()
}

// backward replaces d, the gradient of what forward returned, by that of x.
func (b *block) backward(d []float32) error {
	branch, err := b.mlp.backward(d)
	if err != nil {
		return err
	}
	add(d, d, b.mlpNorm.backward(branch), b.workers)

	branch, err = b.attention.backward(d)
	if err != nil {
		return err
	}
	add(d, d, b.attentionNorm.backward(branch), b.workers)
	return nil
}
