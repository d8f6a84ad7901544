package subset

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/tensor"
)

func TestEvenly(t *testing.T) {
	require.Equal(t, []int{1, 4, 7}, Evenly(9, 3))
	require.Equal(t, []int{0, 1, 2}, Evenly(3, 5))
	require.Empty(t, Evenly(0, 5))
	require.Equal(t, 511<<14, Evenly(1<<23, 256)[255]) // of which int32 has not the double
}

// TestRows has rows in blocks of two, and an outer scale for every three.
func TestRows(t *testing.T) {
	x := &tensor.Tensor{Name: "x", Format: fp8.E4M3, Shape: []int{5, 4}, Block: tensor.Block{Rows: 2, Cols: 2},
		Scales: []float32{1, 2, 3, 4, 5, 6}, Outer: tensor.Outer{Rows: 3, Scales: []float32{7, 8}}}
	for i := range 20 {
		x.Codes = append(x.Codes, byte(30+i))
	}
	part := Rows(x, []int{4, 1})
	require.Equal(t, []int{2, 4}, part.Shape)
	for n, i := range []int{4, 1} {
		for j := range 4 {
			require.Equal(t, x.At(i, j), part.At(n, j))
		}
	}
}
