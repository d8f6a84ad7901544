package train

import (
	"fmt"
	"testing"
)

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

// BenchmarkAdamW is the update of a million parameters.
func BenchmarkAdamW(b *testing.B) {
	const n = 1 << 20
	for _, format := range MomentFormats() {
		for _, stochastic := range []bool{false, true} {
			b.Run(fmt.Sprintf("moments=%v/stochastic=%v", format, stochastic), func(b *testing.B) {
				p := newParam("p", 1, n)
				copy(p.Grad, randoms(1, n))
				o := AdamW{Moments: Moments{Format: format, Stochastic: stochastic}}
				b.SetBytes(n)
				for b.Loop() {
					if _, err := o.Step([]*Param{p}, 1e-3); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(o.MomentBytes())/n, "B/param")
			})
		}
	}
}

// BenchmarkProducts is a step at width 128 with linear layers of each kind.
func BenchmarkProducts(b *testing.B) {
	const batch, seq = 8, 128
	shape := Config{Vocab: 256, Dim: 128, Layers: 4, Heads: 4, Hidden: 344, Context: seq}
	stochastic := func(f NarrowFormat) Rounding {
		r := DefaultRounding(f)
		r.Stochastic = true
		return r
	}
	eight := DefaultFP8()
	eight.Stochastic = true
	for _, kind := range []struct {
		name string
		Config
	}{
		{"fp32", shape},
		{"fp8", withFP8(shape, DefaultFP8())},
		{"fp8-stochastic", withFP8(shape, eight)},
		{"bf16", withRounding(shape, DefaultRounding(NarrowBF16))},
		{"e4m3", withRounding(shape, DefaultRounding(NarrowE4M3))},
		{"e2m1", withRounding(shape, DefaultRounding(NarrowE2M1))},
		{"bf16-stochastic", withRounding(shape, stochastic(NarrowBF16))},
		{"e2m1-stochastic", withRounding(shape, stochastic(NarrowE2M1))},
	} {
		b.Run("products="+kind.name, func(b *testing.B) {
			m, err := NewLlama(kind.Config, 1)
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
		})
	}
}

func withRounding(cfg Config, r Rounding) Config {
	cfg.Rounding = &r
	return cfg
}
