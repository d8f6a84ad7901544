package train

import "fmt"

// block is one layer: attention and MLP, each on a normalized copy of the
// residual stream and added to it.
type block struct {
	attentionNorm *rmsNorm
	attention     *attention
	mlpNorm       *rmsNorm
	mlp           *mlp
	workers       int

	middle, out []float32
	dMiddle, dx []float32
}

func newBlock(layer int, rope *rope, cfg Config) *block {
	prefix := fmt.Sprintf("model.layers.%d.", layer)
	return &block{
		attentionNorm: newRMSNorm(prefix+"input_layernorm.weight", cfg),
		attention:     newAttention(prefix+"self_attn.", rope, cfg),
		mlpNorm:       newRMSNorm(prefix+"post_attention_layernorm.weight", cfg),
		mlp:           newMLP(prefix+"mlp.", cfg),
		workers:       cfg.Workers,
	}
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

// backward returns the gradient of x, valid until the next call.
func (b *block) backward(dy []float32) ([]float32, error) {
	branch, err := b.mlp.backward(dy)
	if err != nil {
		return nil, err
	}
	dMiddle := sized(&b.dMiddle, len(dy))
	add(dMiddle, dy, b.mlpNorm.backward(branch), b.workers)

	branch, err = b.attention.backward(dMiddle)
	if err != nil {
		return nil, err
	}
	dx := sized(&b.dx, len(dy))
	add(dx, dMiddle, b.attentionNorm.backward(branch), b.workers)
	return dx, nil
}
