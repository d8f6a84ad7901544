package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// narrowKinds are pairs of operands: those of octavo's other benchmarks, and the formats
// of MX and of NVFP4.
var narrowKinds = []struct {
	name string
	a, b func(rows, cols int) *tensor.Tensor
}{
	{"fp8", usual(scaling.Input), usual(scaling.Weight)},
	{"mxfp4", narrowTensors(fp8.E2M1, mxBlock, tensor.E8M0Scales, false), narrowTensors(fp8.E2M1, mxBlock, tensor.E8M0Scales, false)},
	{"nvfp4", narrowTensors(fp8.E2M1, nvBlock, tensor.UE4M3Scales, true), narrowTensors(fp8.E2M1, nvBlock, tensor.UE4M3Scales, true)},
	{"mxfp6", narrowTensors(fp8.E2M3, mxBlock, tensor.E8M0Scales, false), narrowTensors(fp8.E2M3, mxBlock, tensor.E8M0Scales, false)},
	{"mxfp8", narrowTensors(fp8.E4M3, mxBlock, tensor.E8M0Scales, false), narrowTensors(fp8.E4M3, mxBlock, tensor.E8M0Scales, false)},
	{"mxint8", narrowTensors(fp8.MXINT8, mxBlock, tensor.E8M0Scales, false), narrowTensors(fp8.MXINT8, mxBlock, tensor.E8M0Scales, false)},
	{"fp8xmxfp4", usual(scaling.Input), narrowTensors(fp8.E2M1, mxBlock, tensor.E8M0Scales, false)},
}

var (
	mxBlock = tensor.Block{Rows: 1, Cols: 32}
	nvBlock = tensor.Block{Rows: 1, Cols: 16}
)

// usual returns what quantizes normally distributed values to E4M3, in the blocks of a role,
// as [NewOperands] does.
func usual(role scaling.Role) func(rows, cols int) *tensor.Tensor {
	return func(rows, cols int) *tensor.Tensor {
		t, err := quantized(rows, cols, scaling.Default(role))
		if err != nil {
			panic(err)
		}
		return t
	}
}

// narrowTensors returns what draws tensors of any finite codes, with scales about 1.
func narrowTensors(f fp8.Format, b tensor.Block, s tensor.ScaleFormat, outer bool) func(rows, cols int) *tensor.Tensor {
	return func(rows, cols int) *tensor.Tensor {
		r := rand.New(rand.NewPCG(1, 16))
		t := &tensor.Tensor{Format: f, Shape: []int{rows, cols}, Block: b, ScaleFormat: s, Codes: make([]byte, rows*cols)}
		for i := range t.Codes {
			for t.Codes[i] = byte(r.Uint32()) >> (8 - f.Bits()); f.IsNaN(t.Codes[i]); {
				t.Codes[i] = byte(r.Uint32())
			}
		}
		gridRows, gridCols := t.Grid()
		t.Scales = make([]float32, gridRows*gridCols)
		for i := range t.Scales {
			if t.Scales[i] = fp8.E8M0(124 + r.IntN(6)).Float32(); s == tensor.UE4M3Scales {
				t.Scales[i] = fp8.E4M3.Float32(byte(0x30 + r.IntN(16)))
			}
		}
		if outer {
			t.Outer.Scales = []float32{0.75}
		}
		return t
	}
}

// BenchmarkNarrow is products in the formats of MX and of NVFP4, beside the one in E4M3 and
// the peers' in float32. A single row, and four, have weights that no cache holds.
func BenchmarkNarrow(b *testing.B) {
	for _, s := range []Shape{{M: 1024, N: 1024, K: 1024, Experts: 1}, {M: 1, N: 16384, K: 8192, Experts: 1}, {M: 4, N: 8192, K: 8192, Experts: 1}} {
		for _, kind := range narrowKinds {
			b.Run(fmt.Sprintf("formats=%s/%v", kind.name, key(s)), func(b *testing.B) {
				x, y := kind.a(s.M, s.K), kind.b(s.N, s.K)
				w, err := gemm.Pack(y)
				if err != nil {
					b.Fatal(err)
				}
				c := make([]float32, s.M*s.N)
				for _, l := range Levels() {
					for _, workers := range []int{1, 2} {
						plain := Case{Level: l, Workers: workers, Run: func() error { return gemm.Multiply(context.Background(), c, x, y, gemm.Options{}) }}
						packed := plain
						packed.Packed, packed.Run = true, func() error { return gemm.Multiply(context.Background(), c, x, w, gemm.Options{}) }
						for _, each := range []Case{plain, packed} {
							b.Run(fmt.Sprintf("level=%v/packed=%t/workers=%d", l, each.Packed, workers), func(b *testing.B) { s.report(b, each) })
						}
					}
				}
			})
		}
		b.Run(fmt.Sprintf("formats=float32/%v", key(s)), func(b *testing.B) {
			for _, workers := range []int{1, 2} {
				for _, c := range peerCases(s, workers) {
					b.Run(fmt.Sprintf("by=%s/workers=%d", c.By, workers), func(b *testing.B) { s.report(b, c) })
				}
			}
		})
	}
}
