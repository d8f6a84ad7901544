package judge

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// honestOperand has random codes of a format under scales of one, and outer scales.
func honestOperand(r *rand.Rand, name string, rows, k int, f fp8.Format, scales tensor.ScaleFormat, outer tensor.Outer) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: f, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: 32}, ScaleFormat: scales, Outer: outer}
	if scales == tensor.UE4M3Scales {
		t.Block.Cols = 16
	}
	for range rows * k {
		t.Codes = append(t.Codes, fp8.EncodeOne(float32(r.NormFloat64()*float64(f.Max())/4), f, fp8.Policy{}))
	}
	_, across := t.Grid()
	for range rows * across {
		switch scales {
		case tensor.UE4M3Scales:
			t.Scales = append(t.Scales, fp8.E4M3.Float32(byte(0x28+r.IntN(0x20))))
		case tensor.E8M0Scales:
			t.Scales = append(t.Scales, fp8.E8M0(120+r.IntN(8)).Float32())
		default:
			t.Scales = append(t.Scales, 0.5+r.Float32())
		}
	}
	return t
}

// TestHonest finds nothing wrong, with alarms that fail, in the canonical product, the exact
// one and those of all models, of every pair of formats of products, under encoded scales
// and outer ones.
func TestHonest(t *testing.T) {
	const m, n, k = 14, 13, 96
	r := rand.New(rand.NewPCG(16, 9))
	formats := []fp8.Format{fp8.E2M1, fp8.E2M3, fp8.E3M2, fp8.MXINT8, fp8.E4M3, fp8.E5M2}
	one, divisor := tensor.Outer{Scales: []float32{0.0123}}, tensor.Outer{Scales: []float32{321}, Divide: true}
	rows := tensor.Outer{Rows: 1}
	for i := range m {
		rows.Scales = append(rows.Scales, 0.01*float32(i+1))
	}
	models := map[string]int{}
	for i, fa := range formats {
		for j, fb := range formats {
			kinds := [][2]tensor.ScaleFormat{{tensor.E8M0Scales, tensor.E8M0Scales}}
			outers := [][2]tensor.Outer{{{}, {}}}
			if fa == fp8.E2M1 {
				kinds = append(kinds, [2]tensor.ScaleFormat{tensor.UE4M3Scales, []tensor.ScaleFormat{tensor.UE4M3Scales, tensor.E8M0Scales, tensor.Float32Scales}[(i+j)%3]})
				outers = append(outers, [2]tensor.Outer{one, divisor}, [2]tensor.Outer{rows, {}})
			}
			for _, kind := range kinds {
				for _, outer := range outers {
					a, b := honestOperand(r, "a", m, k, fa, kind[0], outer[0]), honestOperand(r, "b", n, k, fb, kind[1], outer[1])
					right := func(what string, got []float32, claim Claim) {
						claim.Alarms = Fail
						v, err := Check(t.Context(), got, nil, a, b, claim, Options{})
						require.NoError(t, err)
						require.True(t, v.Pass, "%s: %v by %v: %s", what, &v.A, &v.B, v.Failure())
						require.Nil(t, v.Explanation)
					}
					got := make([]float32, m*n)
					require.NoError(t, gemm.Multiply(t.Context(), got, a, b, gemm.Options{}))
					right("canonical", got, Claim{})
					right("canonical", got, Claim{Want: Canonical})
					require.NoError(t, oracle.Exact(t.Context(), got, a, b, oracle.Options{}))
					right("exact", got, Claim{})
					for _, model := range oracle.Models() {
						kernel := oracle.Kernel{Model: model}
						if model.Float != oracle.NoFloat || kernel.CheckOperands(a, b) != nil {
							continue
						}
						models[model.Name]++
						require.NoError(t, oracle.Predict(t.Context(), got, nil, a, b, kernel, oracle.Options{}))
						right(model.Name, got, Claim{Want: Predicted, Kernel: kernel})
						right(model.Name, got, Claim{Accumulation: oracle.Accumulation{Kernel: kernel}})
					}
				}
			}
		}
	}
	for _, name := range []string{"blackwell-tcgen05", "blackwell-mxfp8", "blackwell-mxfp4", "blackwell-nvfp4"} {
		require.Positive(t, models[name], name)
	}
}
