package power

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestFlushedNarrow finds subnormals that are flushed where C is in bfloat16, which hides all
// but some tens of the elements that this changes, and names them.
func TestFlushedNarrow(t *testing.T) {
	const size, k = 256, 4096
	r, s := rand.New(rand.NewPCG(5, 0)), rand.New(rand.NewPCG(6, 0))
	a, b := operand("a", fp8.E4M3, tensor.Block{}, size, k, r.NormFloat64), operand("b", fp8.E4M3, tensor.Block{}, size, k, s.NormFloat64)
	right := octavo[fp8.BFloat16](t, a, b)
	for name, c := range map[string][]fp8.BFloat16{"both operands": octavo[fp8.BFloat16](t, flushed(a), flushed(b))} {
		differ := 0
		for i := range c {
			differ += count(c[i] != right[i])
		}
		require.Less(t, differ, 200)
		report, err := Measure(t.Context(), c, nil, a, b, Options{})
		require.NoError(t, err)
		log(t, name, report)
		require.True(t, report.Alarm, "%d elements differ", differ)
		require.Len(t, report.Likely, 1)
		require.Contains(t, report.Likely[0], "subnormal codes of "+name+" are flushed to zero: of ")
	}
	report, err := Measure(t.Context(), right, nil, a, b, Options{})
	require.NoError(t, err)
	require.False(t, report.Alarm)
	log(t, "honest", report)
}
