package fault

import (
	c "context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/tensor"
)

// operands returns A of [m, k] and B of [n, k].
func quantized(name string, rows, cols int, block tensor.Block, pattern oracle.Pattern, seed uint64) *tensor.Tensor {
	g := oracle.Generator{Pattern: pattern, Rows: rows, Cols: cols, Block: block, Seed: seed}
	t := &tensor.Tensor{Name: name, Shape: []int{rows, cols}, Block: block}
	err := tensor.Quantize(c.Background(), t, g.Values(), tensor.Quantizer{Scale: func(_ int, amax float32, _ bool) fp8.Scale {
		s := amax / 448
		return fp8.Scale{Stored: s, Multiplier: 1 / s}
	}})
	if err != nil {
		panic(err)
	}
	return t
}

// TestInjectAll injects every fault that the table lists.
func TestInjectAll(t *testing.T) {
	a := quantized("a", 40, 450, tensor.Block{Rows: 1, Cols: 128}, oracle.Bell, 1)
	b := quantized("b", 36, 450, tensor.Block{Rows: 16, Cols: 128}, oracle.Bell, 2)
	p := Product{A: a, B: b}
	want := make([]float32, 40*36)
	require.NoError(t, gemm.Multiply(t.Context(), want, a, b, gemm.Options{}))
	got := make([]float32, len(want))
	require.NoError(t, Inject(t.Context(), got, Fault{}, p, Options{}))
	require.Equal(t, want, got)
	for _, f := range All[float32](p) {
		err := Inject(t.Context(), got, f, p, Options{})
		n := 0
		for i := range got {
			if got[i] != want[i] {
				n++
			}
		}
		t.Logf("%4d %v %v", n, f, err)
	}
}
