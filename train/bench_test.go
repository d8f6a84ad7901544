package train

import (
	"testing"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
)

// BenchmarkStep is one FP32 step of the default size: forward, backward, update.
func BenchmarkStep(b *testing.B) {
	const batch, seq = 8, 128
	m, err := nn.NewLlama(nn.Config{Vocab: 256, Dim: 64, Layers: 4, Heads: 4, Hidden: 172, Context: seq}, 1)
	if err != nil {
		b.Fatal(err)
	}
	tokens, targets := someTokens(1, batch*seq, 256), someTokens(2, batch*seq, 256)
	optimizer := optim.AdamW{Clip: 1}
	for b.Loop() {
		m.ZeroGrad()
		if _, err := m.Loss(b.Context(), tokens, targets, batch, seq); err != nil {
			b.Fatal(err)
		}
		if err := m.Backward(b.Context()); err != nil {
			b.Fatal(err)
		}
		if _, err := optimizer.Step(b.Context(), m.Params(), 1e-3); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProducts is a step at width 128 with linear layers of each kind.
func BenchmarkProducts(b *testing.B) {
	const batch, seq = 8, 128
	shape := nn.Config{Vocab: 256, Dim: 128, Layers: 4, Heads: 4, Hidden: 344, Context: seq}
	stochastic := func(f nn.NarrowFormat) nn.Rounding {
		r := nn.DefaultRounding(f)
		r.Stochastic = true
		return r
	}
	eight := nn.DefaultFP8()
	eight.Stochastic = true
	for _, kind := range []struct {
		name string
		nn.Config
	}{
		{"fp32", shape},
		{"fp8", withFP8(shape, nn.DefaultFP8())},
		{"fp8-stochastic", withFP8(shape, eight)},
		{"bf16", withRounding(shape, nn.DefaultRounding(nn.NarrowBF16))},
		{"e4m3", withRounding(shape, nn.DefaultRounding(nn.NarrowE4M3))},
		{"e2m1", withRounding(shape, nn.DefaultRounding(nn.NarrowE2M1))},
		{"bf16-stochastic", withRounding(shape, stochastic(nn.NarrowBF16))},
		{"e2m1-stochastic", withRounding(shape, stochastic(nn.NarrowE2M1))},
	} {
		b.Run("products="+kind.name, func(b *testing.B) {
			m, err := nn.NewLlama(kind.Config, 1)
			if err != nil {
				b.Fatal(err)
			}
			tokens, targets := someTokens(1, batch*seq, 256), someTokens(2, batch*seq, 256)
			optimizer := optim.AdamW{Clip: 1}
			for b.Loop() {
				m.ZeroGrad()
				if _, err := m.Loss(b.Context(), tokens, targets, batch, seq); err != nil {
					b.Fatal(err)
				}
				if err := m.Backward(b.Context()); err != nil {
					b.Fatal(err)
				}
				if _, err := optimizer.Step(b.Context(), m.Params(), 1e-3); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func withRounding(cfg nn.Config, r nn.Rounding) nn.Config {
	cfg.Rounding = &r
	return cfg
}
