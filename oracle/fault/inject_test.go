package fault

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// operandOf quantizes a pattern. If wide, scales are from 2^-20 to 2^20 times what they
// would be; if powers, powers of two.
func operandOf(name string, rows, cols int, block tensor.Block, kind operandKind, seed uint64) *tensor.Tensor {
	g := oracle.Generator{Pattern: kind.pattern, Rows: rows, Cols: cols, Block: block, Seed: seed, Uniform: true}
	t := &tensor.Tensor{Name: name, Shape: []int{rows, cols}, Block: block}
	err := tensor.Quantize(context.Background(), t, g.Values(), tensor.Quantizer{Scale: func(_ int, amax float32, _ bool) fp8.Scale {
		s := amax / 448
		if kind.powers {
			s = powerUp(Fault{}, s)
		}
		return fp8.Scale{Stored: s, Multiplier: 1 / s}
	}})
	if err != nil {
		panic(err)
	}
	if kind.wide {
		for i := range t.Scales {
			h := (uint64(i) + seed*1000 + 1) * 0x9E3779B97F4A7C15
			t.Scales[i] = float32(math.Ldexp(float64(t.Scales[i]), int(h>>40)%41-20))
		}
	}
	return t
}

type operandKind struct {
	name         string
	pattern      oracle.Pattern
	wide, powers bool
}

var operandKinds = []operandKind{
	{name: "normal", pattern: oracle.Bell},
	{name: "outliers", pattern: oracle.Outlier},
	{name: "wide scales", pattern: oracle.Bell, wide: true},
	{name: "normal, powers of two", pattern: oracle.Bell, powers: true},
	{name: "outliers, powers of two", pattern: oracle.Outlier, powers: true},
	{name: "wide scales, powers of two", pattern: oracle.Bell, wide: true, powers: true},
}

// kindsOfOperands are those that most tests take: each pattern of values, and scales of both
// kinds; in short tests one of them, and in full tests all.
func kindsOfOperands() []operandKind {
	switch {
	case testutil.Full():
		return operandKinds
	case testing.Short():
		return operandKinds[4:5]
	}
	return []operandKind{operandKinds[0], operandKinds[2], operandKinds[4]}
}

// TestInjectAll injects every fault that the table lists.
func TestInjectAll(t *testing.T) {
	a := operandOf("a", 40, 450, tensor.Block{Rows: 1, Cols: 128}, operandKinds[0], 1)
	b := operandOf("b", 36, 450, tensor.Block{Rows: 16, Cols: 128}, operandKinds[0], 2)
	p := Product{A: a, B: b}
	want := make([]float32, 40*36)
	require.NoError(t, gemm.Multiply(t.Context(), want, a, b, gemm.Options{}))
	got := make([]float32, len(want))
	require.NoError(t, Inject(t.Context(), got, Fault{}, p, Options{}))
	require.Equal(t, want, got)
	seen := map[Kind]bool{}
	for _, f := range All(Float32, p) {
		require.NoError(t, Inject(t.Context(), got, f, p, Options{}), f)
		seen[f.Kind] = true
	}
	require.Greater(t, len(seen), 40)
}
