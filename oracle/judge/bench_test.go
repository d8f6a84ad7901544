package judge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/tensor"
)

// BenchmarkCheck judges a product of 1024x1024x4096 that is right, some that a fault explains, and
// one that nothing does.
func BenchmarkCheck(b *testing.B) {
	const m, n, k = 1024, 1024, 4096
	r := rand.New(rand.NewPCG(1, 36))
	draw := func(name string, rows int, block tensor.Block) *tensor.Tensor {
		t := &tensor.Tensor{Name: name, Format: fp8.E4M3, Shape: []int{rows, k}, Block: block}
		for range rows * k {
			t.Codes = append(t.Codes, fp8.EncodeOne(r.NormFloat64()*60, fp8.E4M3, fp8.Policy{}))
		}
		down, across := t.Grid()
		for range down * across {
			t.Scales = append(t.Scales, float32(math.Exp2(4*r.Float64()-8)))
		}
		return t
	}
	x, y := draw("a", m, tensor.Block{Rows: 1, Cols: 128}), draw("b", n, tensor.Block{Rows: 128, Cols: 128})
	hopper := Claim{Accumulation: oracle.Accumulation{Kernel: oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128}}}
	bits := Claim{Want: Predicted, Kernel: oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128, Scales: oracle.ProductThenFMA}}
	for _, c := range []struct {
		name  string
		claim Claim
		fault fault.Fault
		noise bool
	}{
		{name: "right"},
		{name: "scales-transposed", fault: fault.Fault{Kind: "scales-transposed", Of: fault.A}},
		{name: "split", fault: fault.Fault{Kind: "split-sums", Type: fault.BFloat16, By: 8, To: 512}},
		{name: "lost", fault: fault.Fault{Kind: "k-lost", From: 77, To: 78, Where: fault.Region{FromRow: 5, ToRow: 6}}},
		{name: "noise", noise: true},
		{name: "hopper-wgmma/lost", claim: hopper, fault: fault.Fault{Kind: "k-lost", From: 64, To: 128}},
		{name: "bits/lost", claim: bits, fault: fault.Fault{Kind: "k-lost", From: 64, To: 128}},
		{name: "bits/noise", claim: bits, noise: true},
	} {
		b.Run(c.name, func(b *testing.B) {
			got := make([]float32, m*n)
			p := fault.Product{A: x, B: y, Kernel: c.claim.Kernel}
			require.NoError(b, fault.Inject(b.Context(), got, c.fault, p, fault.Options{}))
			for i := range got {
				if c.noise {
					got[i] *= float32(1 + 0.01*r.NormFloat64())
				}
			}
			for b.Loop() {
				v, err := Check(b.Context(), got, nil, x, y, c.claim, Options{})
				require.NoError(b, err)
				require.Equal(b, c.name == "right", v.Pass)
			}
		})
	}
}
