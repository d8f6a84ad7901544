package fault

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestBits injects faults that are too small for any bound, and wants them named where
// bits are demanded.
func TestBits(t *testing.T) {
	kernels := []oracle.Kernel{{}, {Model: oracle.HopperWGMMA(), Promote: 128, Scales: oracle.ProductThenFMA}}
	for _, kind := range kindsOfOperands() {
		for _, kernel := range kernels {
			block := tensor.Block{Rows: 1, Cols: 512}
			p := Product{A: operandOf("a", 24, 1026, block, kind, 3), B: operandOf("b", 32, 1026, block, kind, 4), Kernel: kernel, Bits: true}
			got, narrow := make([]float32, 24*32), make([]fp8.BFloat16, 24*32)
			faults := []Fault{
				{Kind: "k-tail-lost", By: 1}, {Kind: "k-tail-lost", By: 2}, {Kind: "codes-flushed", Of: A}, {Kind: "codes-flushed", Of: B},
				{Kind: "scales-rounded", Of: A, Type: BFloat16}, {Kind: "rounded", Type: Float16}, {Kind: "rounded", Type: BFloat16},
				{Kind: "truncated", Type: BFloat16},
			}
			if kernel != (oracle.Kernel{}) {
				faults = append(faults, Fault{Kind: "unpromoted", Model: "hopper-wgmma"}, Fault{Kind: "other-promotion", Model: "hopper-wgmma", By: 256},
					Fault{Kind: "other-model", Model: "ada-mma", By: 128}, Fault{Kind: "other-model", Model: "arm-fdot4", By: 128},
					Fault{Kind: "other-model", Model: "amx-fp8", By: 128}, Fault{Kind: "other-scale-order", Model: "hopper-wgmma", By: 128, Scales: oracle.BThenA}, Fault{Kind: "float32-sums"})
			} else {
				faults = append(faults, Fault{Kind: "unpromoted", Model: "hopper-mma"}, Fault{Kind: "unpromoted", Model: "hopper-wgmma"})
			}
			for _, f := range faults {
				require.NoError(t, Inject(t.Context(), got, f, p, Options{}), f)
				e, err := Explain(t.Context(), got, p, Options{})
				require.NoError(t, err)
				if e.Wrong >= 8 && !e.has(f) {
					t.Errorf("%s, %v: %v: %d wrong: %v", kind.name, kernel.Model, f, e.Wrong, e)
				}
			}
			for _, f := range []Fault{{Kind: "rounded", Type: Float16}, {Kind: "truncated", Type: BFloat16}} {
				require.NoError(t, Inject(t.Context(), narrow, f, p, Options{}), f)
				e, err := Explain(t.Context(), narrow, p, Options{})
				require.NoError(t, err)
				if e.Wrong >= 8 && !e.has(f) {
					t.Errorf("%s, %v, bfloat16: %v: %d wrong: %v", kind.name, kernel.Model, f, e.Wrong, e)
				}
			}
		}
	}
}

// TestNarrowSums sums in float16 and bfloat16, in orders that no list has.
func TestNarrowSums(t *testing.T) {
	for _, kind := range kindsOfOperands() {
		p := Product{A: operandOf("a", 24, 300, tensor.Block{Rows: 1}, kind, 5), B: operandOf("b", 20, 300, tensor.Block{}, kind, 6)}
		for _, to := range []Type{Float16, BFloat16} {
			r := rand.New(rand.NewPCG(1, 2))
			order := r.Perm(300)
			got := make([]float32, 24*20)
			for i := range 24 {
				for j := range 20 {
					var sum float32
					for _, k := range order {
						sum = to.narrow(sum + float32(fp8.E4M3.Float32(p.A.Row(i)[k])*fp8.E4M3.Float32(p.B.Row(j)[k])))
					}
					got[i*20+j] = float32(sum*p.A.Scale(i, 0)) * p.B.Scale(j, 0)
				}
			}
			e, err := Explain(t.Context(), got, p, Options{})
			require.NoError(t, err)
			require.True(t, e.has(Fault{Kind: "narrow-sums", Type: to}), "%s: %v", kind.name, e)
		}
	}
}
