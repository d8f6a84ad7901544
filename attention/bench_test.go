package attention_test

import (
	"fmt"
	"testing"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/tensor"
)

func BenchmarkForward(b *testing.B) {
	for _, s := range []shape{
		{heads: 8, kvHeads: 2, queries: 512, keys: 512, dim: 128, valueDim: 128,
			mask: attention.Mask{Causal: true}, k: tensor.Block{Rows: 1}},
		{heads: 128, kvHeads: 1, queries: 1, keys: 4096, dim: 576, valueDim: 512},
	} {
		p := s.problem(1)
		out := make([]float32, s.heads*s.queries*s.valueDim)
		pairs := s.heads * s.queries * s.keys
		if s.mask.Causal {
			pairs /= 2
		}
		for _, f := range []attention.PFormat{attention.PBFloat16, attention.PE4M3} {
			b.Run(fmt.Sprintf("heads=%d,queries=%d,keys=%d,dim=%d/%v",
				s.heads, s.queries, s.keys, s.dim, f), func(b *testing.B) {
				for b.Loop() {
					_ = attention.Forward(b.Context(), out, p, attention.Options{Workers: 1, P: f})
				}
				each := float64(s.dim+s.valueDim) * float64(b.N) / b.Elapsed().Seconds() / 1e9
				b.ReportMetric(float64(pairs)*each, "GFMA/s")
				b.ReportMetric(float64(s.kvHeads*s.keys)*each, "GB/s")
			})
		}
	}
}
