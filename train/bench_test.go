package train

import "testing"

// BenchmarkStep is one FP32 step of the default size: forward, backward, update.
func BenchmarkStep(b *testing.B) {
	const batch, seq = 8, 128
	m, err := NewLlama(Config{Vocab: 256, Dim: 64, Layers: 4, Heads: 4, Hidden: 172, Context: seq}, 1)
	if err != nil {
		b.Fatal(err)
	}
	tokens, targets := someTokens(1, batch*seq, 256), someTokens(2, batch*seq, 256)
	optimizer := AdamW{Clip: 1}
	for b.Loop() {
		m.ZeroGrad()
		if _, err := m.Loss(tokens, targets, batch, seq); err != nil {
			b.Fatal(err)
		}
		if err := m.Backward(); err != nil {
			b.Fatal(err)
		}
		if _, err := optimizer.Step(m.Params(), 1e-3); err != nil {
			b.Fatal(err)
		}
	}
}
