package judge

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/tensor"
)

// nvfp4 is a matrix of NVFP4 with outer scales for some rows each, 0 for all.
func nvfp4(r *rand.Rand, name string, rows, k, each int) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, Format: fp8.E2M1, Shape: []int{rows, k}, Block: tensor.Block{Rows: 1, Cols: 16},
		ScaleFormat: tensor.UE4M3Scales, Outer: tensor.Outer{Rows: each}}
	for range rows * k {
		t.Codes = append(t.Codes, byte(r.IntN(16)))
	}
	_, across := t.Grid()
	for range rows * across {
		t.Scales = append(t.Scales, fp8.E4M3.Float32(byte(0x30+r.IntN(0x20))))
	}
	n := 1
	if each > 0 {
		n = (rows + each - 1) / each
	}
	for range n {
		t.Outer.Scales = append(t.Outer.Scales, 0.001+r.Float32()/100)
	}
	return t
}

// TestOperands names the formats of scales, and outer scales, in text and in JSON.
func TestOperands(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 2))
	a, b := nvfp4(r, "a", 6, 32, 0), nvfp4(r, "b", 4, 32, 2)
	a.Outer.Scales[0], b.Outer.Scales[0], b.Outer.Divide = 0.25, 8, true
	got := make([]float32, 24)
	require.NoError(t, fault.Inject(t.Context(), got, fault.Fault{}, fault.Product{A: a, B: b}, fault.Options{}))
	v, err := Check(t.Context(), got, nil, a, b, Claim{}, Options{})
	require.NoError(t, err)
	require.Equal(t, `"a", E2M1 [6 32], one scale for 1x16, UE4M3, times an outer scale of 0.25`, v.A.String())
	require.Equal(t, `"b", E2M1 [4 32], one scale for 1x16, UE4M3, divided by an outer scale for every 2 rows`, v.B.String())
	text, err := json.Marshal([]Operand{v.A, v.B})
	require.NoError(t, err)
	require.JSONEq(t, `[
		{"name": "a", "format": "E2M1", "shape": [6, 32], "block": "1x16", "scaleFormat": "UE4M3",
			"scales": 12, "distinct": 10, "alike": 0.030303030303030304, "outer": {"scales": 1, "rows": 0, "divide": false, "first": 0.25}},
		{"name": "b", "format": "E2M1", "shape": [4, 32], "block": "1x16", "scaleFormat": "UE4M3",
			"scales": 8, "distinct": 7, "alike": 0.03571428571428571, "outer": {"scales": 2, "rows": 2, "divide": true, "first": 8}}]`, string(text))
	b.ScaleFormat, b.Outer = tensor.Float32Scales, tensor.Outer{}
	require.Equal(t, `"b", E2M1 [4 32], one scale for 1x16`, NewOperand(b).String())
	for block, want := range map[tensor.Block]string{{}: "the tensor", {Rows: 1}: "each row", {Rows: 2}: "2 rows", {Cols: 16}: "4x16"} {
		require.Equal(t, `"b", E2M1 [4 32], one scale for `+want, Operand{Name: "b", Format: "E2M1", Shape: []int{4, 32}, Block: block.String()}.String())
	}
	b.Outer = tensor.Outer{Scales: []float32{1, 2, 3, 4}, Rows: 1}
	require.Equal(t, `"b", E2M1 [4 32], one scale for 1x16, times an outer scale for each row`, NewOperand(b).String())
}

// TestNarrow judges products of NVFP4 with outer scales, whole and by a sample, and names
// what is wrong.
func TestNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(16, 1))
	const m, n, k = 40, 36, 90
	for _, each := range []int{0, 1, 3} {
		a, b := nvfp4(r, "a", m, k, each), nvfp4(r, "b", n, k, 0)
		for _, claim := range []Claim{{Want: Exact}, {Want: Canonical}, {Want: Predicted, Kernel: oracle.Kernel{Model: oracle.BlackwellNVFP4()}}} {
			p := fault.Product{A: a, B: b, Kernel: claim.Kernel}
			for _, o := range []Options{{}, {Sample: &Sample{Elements: 200, Suspects: 50, Seed: 1}}} {
				got := make([]float32, m*n)
				require.NoError(t, fault.Inject(t.Context(), got, fault.Fault{}, p, fault.Options{}))
				v, err := Check(t.Context(), got, nil, a, b, claim, o)
				require.NoError(t, err)
				require.True(t, v.Pass, "%v, outer scales of %d rows", claim.Want, each)
				f := fault.Fault{Kind: "outer-reciprocal", Of: fault.A}
				require.NoError(t, fault.Inject(t.Context(), got, f, p, fault.Options{}))
				v, err = Check(t.Context(), got, nil, a, b, claim, o)
				require.NoError(t, err)
				require.False(t, v.Pass)
				require.Equal(t, f, v.Explanation.Findings[0].Fault, "%v", v.Explanation)
				require.Empty(t, v.Explanation.Findings[0].Same)
			}
		}
	}
	// A scale that is NaN is data, and its row NaN.
	a, b := nvfp4(r, "a", m, k, 0), nvfp4(r, "b", n, k, 0)
	a.Scales[7] = float32(math.NaN())
	got := make([]float32, m*n)
	require.NoError(t, fault.Inject(t.Context(), got, fault.Fault{}, fault.Product{A: a, B: b}, fault.Options{}))
	v, err := Check(t.Context(), got, nil, a, b, Claim{Want: Canonical}, Options{})
	require.NoError(t, err)
	require.True(t, v.Pass)
	require.Equal(t, n, v.Comparison.NonFinite.WantNaN)
	require.Contains(t, v.Power.Reason, "every change of a bit fails")
	got[3] *= 1.5
	v, err = Check(t.Context(), got, nil, a, b, Claim{}, Options{})
	require.NoError(t, err)
	require.False(t, v.Pass)
	var text bytes.Buffer
	require.NoError(t, v.WriteText(&text))
	require.Contains(t, text.String(), "the sum of blocks times outer scales of")
	got[3] = float32(math.NaN())
	require.NoError(t, oracle.Exact(t.Context(), got, a, b, oracle.Options{}))
	v, err = Check(t.Context(), got, nil, a, b, Claim{}, Options{})
	require.NoError(t, err)
	require.True(t, v.Pass)
	require.Empty(t, v.Power.Reason)
	require.NotEmpty(t, v.Power.Result.Sights)
}
