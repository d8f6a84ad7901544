package bench

import (
	"fmt"
	"slices"
	"testing"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// BenchmarkGEMM is the block-scaled product in float32, of tensors and of packed
// weights, plain and grouped, in FP8 and in narrower formats.
func BenchmarkGEMM(b *testing.B) {
	memory := written(16 * mebi)
	for _, s := range slices.Concat(Shapes(), LargeShapes()) {
		o, err := NewOperands(s)
		if err != nil {
			b.Fatal(err)
		}
		for _, l := range Levels() {
			for _, workers := range []int{1, 2} {
				for _, c := range o.Cases(l, workers) {
					of := s.Recipe.of()
					name := fmt.Sprintf("a=%s/b=%s/scales=%v,%v/level=%v/%v/packed=%t/workers=%d", lower(of.input.Format), lower(of.weight.Format),
						of.input.Block, of.weight.Block, l, key(s), c.Packed, workers)
					b.Run(name, func(b *testing.B) {
						s.report(b, c)
						if !of.integer {
							s.reportRoof(b, c, memory)
						}
					})
				}
			}
		}
	}
}

// BenchmarkPeers is the peers' float32 product of the same shapes.
func BenchmarkPeers(b *testing.B) {
	for _, s := range slices.Concat(Shapes(), LargeShapes()) {
		if !s.hasPeers() {
			continue
		}
		for _, workers := range []int{1, 2} {
			for _, c := range peerCases(s, workers) {
				b.Run(fmt.Sprintf("by=%s/%v/workers=%d", c.By, key(s), workers), func(b *testing.B) { s.report(b, c) })
			}
		}
	}
}

// key is a shape as benchstat likes it.
func key(s Shape) string {
	return fmt.Sprintf("m=%d,n=%d,k=%d,experts=%d", s.M, s.N, s.K, s.Experts)
}

// measure runs a case as a benchmark.
func (c Case) measure(b *testing.B) {
	restore, err := c.Prepare()
	if err != nil {
		b.Fatal(err)
	}
	defer restore()
	for b.Loop() {
		if err := c.Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func (s Shape) report(b *testing.B, c Case) {
	c.measure(b)
	b.ReportMetric(s.rate(b), "GFLOP/s")
}

func (s Shape) rate(b *testing.B) float64 {
	return s.FLOP() * float64(b.N) / b.Elapsed().Seconds() / 1e9
}

// reportRoof adds what part that is of what the machine can do now.
func (s Shape) reportRoof(b *testing.B, c Case, memory []byte) {
	var limits Limits
	limits.measure([]cpu.Level{c.Level}, []int{c.Workers}, memory, []int{len(memory)})
	if roof := limits.Roof(c.Level.String(), c.Workers, s.Intensity()); roof > 0 {
		b.ReportMetric(100*s.rate(b)/roof, "%roof")
	}
}

// BenchmarkMultiplyAndQuantize is a product whose result is quantized meanwhile, and afterwards.
func BenchmarkMultiplyAndQuantize(b *testing.B) {
	for _, s := range []Shape{{M: 1024, N: 1024, K: 1024}, {M: 128, N: 4096, K: 4096}, {M: 2048, N: 4096, K: 128}} {
		o, err := NewOperands(s)
		if err != nil {
			b.Fatal(err)
		}
		c, t := make([]float32, s.M*s.N), &tensor.Tensor{Shape: []int{s.M, s.N}}
		for _, p := range []scaling.Profile{scaling.TEBlockPow2, scaling.MXFloor} {
			q := scaling.Quantizer{Recipe: p.Recipe(scaling.Input)}
			name := fmt.Sprintf("profile=%s/%v", p, key(s))
			b.Run(name+"/by=one-go", func(b *testing.B) {
				for b.Loop() {
					if err := gemm.MultiplyAndQuantize(b.Context(), c, t, o.a, o.b[0], gemm.Options{}, q); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+"/by=two", func(b *testing.B) {
				for b.Loop() {
					if err := gemm.Multiply(b.Context(), c, o.a, o.b[0], gemm.Options{}); err != nil {
						b.Fatal(err)
					}
					if err := scaling.Quantize(b.Context(), t, c, q); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
