package nn

import "github.com/octavo-fp8/octavo/tensor"

// ActivationBytes is the memory that activations take from the forward to the
// backward pass. What layers share because they need it within a call only is no
// part of it, nor are tokens and targets.
type ActivationBytes struct {
	Float32 int // what is kept in FP32
	Codes   int // FP8 values of 1 byte, and with ActivationsDeepSeekV3 E5M6 ones of 12 bits
	Scales  int // theirs, in FP32
}

// Total returns the sum.
func (b ActivationBytes) Total() int { return b.Float32 + b.Codes + b.Scales }

// ActivationBytes returns the memory of what the last [Llama.Forward] kept for
// [Llama.Backward], counted from the buffers that it is in; 0 before the first. What
// policies compute again is no part of it: [ActivationPlan] counts it apart.
func (m *Llama) ActivationBytes() ActivationBytes { return m.activationBytes }

func (m *Llama) countActivations() (n ActivationBytes) {
	n.floats(m.stream...)
	n.floats(m.norm.inverse, m.normed, m.logits, m.loss.logSums)
	for _, b := range m.blocks {
		b.countActivations(&n)
	}
	return n
}

func (b *ActivationBytes) floats(buffers ...[]float32) {
	for _, x := range buffers {
		b.Float32 += 4 * len(x)
	}
}

func (b *ActivationBytes) tensors(kept ...*tensor.Tensor) {
	for _, t := range kept {
		b.Codes += len(t.Codes)
		b.Scales += 4 * len(t.Scales)
	}
}

// kept counts the inputs of linear layers in FP8: those that layers share once.
func (b *ActivationBytes) kept(layers []*Linear) {
	seen := map[*tensor.Tensor]bool{nil: true}
	for _, l := range layers {
		if !seen[l.kept] {
			b.tensors(l.kept)
		}
		seen[l.kept] = true
	}
}
