package nn

import (
	"slices"

	"github.com/octavo-fp8/octavo/tensor"
)

// ActivationBytes is the memory that activations take from the forward to the
// backward pass. What layers share because they need it within a call only is no
// part of it, nor are tokens and targets.
type ActivationBytes struct {
	Float32 int // what is kept in FP32
	Codes   int // FP8 values
	Scales  int // theirs, in FP32
}

// Total returns the sum.
func (b ActivationBytes) Total() int { return b.Float32 + b.Codes + b.Scales }

// ActivationBytes returns the memory of what the last [Llama.Loss] kept for
// [Llama.Backward], counted from the buffers that it is in; 0 before the first.
func (m *Llama) ActivationBytes() ActivationBytes { return m.activationBytes }

func (m *Llama) countActivations() (n ActivationBytes) {
	n.floats(m.embedding.out, m.norm.inverse, *m.norm.out, m.head.logits, m.head.logSums)
	for _, b := range m.blocks {
		b.countActivations(&n)
	}
	return n
}

func (b *block) countActivations(n *ActivationBytes) {
	a, m := b.attention, b.mlp
	n.floats(b.attentionNorm.inverse, a.q, a.k, a.v, a.probs, b.middle, b.mlpNorm.inverse, m.scales.Values, b.out)
	if b.format.keepsInputs() {
		n.floats(b.inputs.attention, b.inputs.mixed, b.inputs.mlp, b.inputs.product)
	}
	if b.format.keepsBranches() {
		n.floats(m.branches.u, m.branches.g)
	}
	kept := []*tensor.Tensor{&m.cache.u, &m.cache.g}
	for _, l := range b.linears() {
		if t := l.kept(); t != nil && !slices.Contains(kept, t) {
			kept = append(kept, t)
		}
	}
	for _, t := range kept {
		n.Codes += len(t.Codes)
		n.Scales += 4 * len(t.Scales)
	}
}

func (b *ActivationBytes) floats(buffers ...[]float32) {
	for _, x := range buffers {
		b.Float32 += 4 * len(x)
	}
}
