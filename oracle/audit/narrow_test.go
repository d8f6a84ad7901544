package audit

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestNarrow audits a test of NVFP4 operands with outer scales.
func TestNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	operand := func(name string, rows int, outer float32) *tensor.Tensor {
		const k = 96
		x := &tensor.Tensor{Name: name, Format: fp8.E2M1, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: 16},
			ScaleFormat: tensor.UE4M3Scales, Outer: tensor.Outer{Scales: []float32{outer}}}
		for range rows * k {
			x.Codes = append(x.Codes, byte(r.IntN(16)))
		}
		for range rows * k / 16 {
			x.Scales = append(x.Scales, fp8.E4M3.Float32(byte(0x30+r.IntN(0x20))))
		}
		return x
	}
	p := fault.Product{A: operand("a", 24, 0.013), B: operand("b", 20, 0.0071)}
	report, err := Run[float32](t.Context(), p, Test{Criteria: []Criterion{{Rtol: 1e-2, Atol: 1e-1}}}, Options{})
	require.NoError(t, err)
	kinds := map[fault.Kind]Outcome{}
	for _, f := range report.Proposal.Faults {
		kinds[f.Fault.Kind] = f.Outcome
	}
	for _, k := range []fault.Kind{"nibbles-swapped", "outer-ignored", "outer-squared", "outer-reciprocal", "scales-as-e8m0", "scales-grid"} {
		require.Contains(t, kinds, k)
		require.Equal(t, Caught, kinds[k], "%v", k)
	}
	require.Zero(t, report.Proposal.FalseFailures)
}
