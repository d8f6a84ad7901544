package judge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestLimit says that swapped scales would not be seen where that is so of many pairs of
// them, and otherwise not.
func TestLimit(t *testing.T) {
	of := func(scales ...float32) Operand {
		x := &tensor.Tensor{Name: "a", Format: fp8.E4M3, Shape: []int{1, len(scales)}, Block: tensor.Block{Rows: 1, Cols: 1}, Codes: make([]byte, len(scales)), Scales: scales}
		return NewOperand(x)
	}
	for want, o := range map[string]Operand{
		"its 3 scales are all equal: swapped scales would not be seen":                                               of(2, 2, 2),
		"its 4 scales have 2 distinct values, and 50 % of pairs are equal: a swap of equal scales would not be seen": of(1, 2, 1, 1),
		"its 4 scales have 2 distinct values, and 33 % of pairs are equal: a swap of equal scales would not be seen": of(1, 2, 2, 1),
	} {
		require.Equal(t, want, o.Limit())
		require.Contains(t, o.String(), "; "+want)
	}
	for _, o := range []Operand{of(), of(1), of(1, 2), of(1, 2, 3, 4, 1), of(1, 2, 3, 4, 1, 2, 3, 4)} {
		require.Empty(t, o.Limit())
		require.NotContains(t, o.String(), "swapped")
	}
}
