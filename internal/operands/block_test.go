package operands

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

func TestBlockInferred(t *testing.T) {
	for _, test := range []struct {
		codes, scales []int
		want          string // the block, or what the error says
	}{
		{[]int{256, 512}, []int{256, 4}, "1x128"},
		{[]int{256, 512}, []int{2, 4}, "128x128"},
		{[]int{150, 300}, []int{2, 3}, "128x128"},
		{[]int{96, 96}, []int{3, 3}, "32x32"},
		{[]int{2, 3, 64}, []int{2, 3, 2}, "1x32"},
		{[]int{256, 512}, []int{}, "tensor"},
		{[]int{256, 512}, []int{1}, "tensor"},
		{[]int{256, 512}, []int{1, 1}, "tensor"},
		{[]int{256, 512}, []int{256, 1}, "row"},
		{[]int{256, 512}, []int{256}, "blocks of allx2 and of row fit: choose one"},
		{[]int{100, 512}, []int{100}, "row"},
		{[]int{1, 512}, []int{1, 4}, "allx128"},
		{[]int{384, 128}, []int{2, 1}, "blocks of 256xall and of 192xall fit: choose one"},
		{[]int{3, 4}, []int{2, 3}, "no usual block fits: say which it is"},
		{[]int{2, 2}, []int{3}, "no usual block fits"},
		{[]int{0, 4}, []int{0, 2}, "no usual block fits"},
		{[]int{0, 4}, []int{1, 2}, "no usual block fits"},
		{[]int{100, 512}, []int{7, 1}, "16xall"}, // of 7 parts
	} {
		o := Operand{}
		block, err := o.block(safetensors.Info{Name: "x", Shape: test.codes}, safetensors.Info{Name: "s", Shape: test.scales})
		if err != nil {
			require.ErrorIs(t, err, ErrBlock)
			require.ErrorContains(t, err, test.want)
			continue
		}
		require.Equal(t, test.want, block.String(), "%v", test)
	}
	given := tensor.Block{Rows: 5, Cols: 9}
	o := Operand{Block: &given}
	block, err := o.block(safetensors.Info{Shape: []int{7, 9}}, safetensors.Info{Shape: []int{2, 1}})
	require.NoError(t, err)
	require.Equal(t, given, block)
}

// TestFittingBlocks checks that every block that is offered fits, and that the ones
// of libraries are among them.
func TestFittingBlocks(t *testing.T) {
	for rows := 1; rows < 70; rows++ {
		for cols := 1; cols < 70; cols++ {
			for _, b := range []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 32}, {Rows: 32, Cols: 32}, {Rows: 16, Cols: 16}} {
				down, across := b.Grid(rows, cols)
				found := false
				for _, f := range fittingBlocks([]int{rows, cols}, []int{down, across}) {
					r, c := f.Grid(rows, cols)
					require.Equal(t, []int{down, across}, []int{r, c})
					r1, c1 := f.Extents(rows, cols)
					r2, c2 := b.Extents(rows, cols)
					found = found || r1 == r2 && c1 == c2
				}
				require.True(t, found, "%dx%d in blocks of %v", rows, cols, b)
			}
		}
	}
}
