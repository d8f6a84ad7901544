package tensor_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/tensor"
)

func TestBlockString(t *testing.T) {
	for want, b := range map[string]tensor.Block{
		"tensor":   {},
		"row":      {Rows: 1},
		"allx1":    {Cols: 1},
		"1x128":    {Rows: 1, Cols: 128},
		"128x128":  {Rows: 128, Cols: 128},
		"128x1":    {Rows: 128, Cols: 1},
		"1x32":     {Rows: 1, Cols: 32},
		"allx7":    {Cols: 7},
		"2xall":    {Rows: 2},
		"3x100000": {Rows: 3, Cols: 100000},
	} {
		require.Equal(t, want, b.String())
		got, err := tensor.ParseBlock(want)
		require.NoError(t, err)
		require.Equal(t, b, got)
	}
}

func TestParseBlock(t *testing.T) {
	for s, want := range map[string]tensor.Block{
		"allxall": {},
		"1xall":   {Rows: 1},
	} {
		got, err := tensor.ParseBlock(s)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, s := range []string{
		"", "x", "128", "128x", "x128", "0x128", "128x0", "-1x128", "1x-1", "1x2x3", "1 x 128", "1X128", "Tensor",
		"rows", "all", "1.5x2", "99999999999999999999x1", "0x80x1", "+1x128", "1x+128", "01x128", "1_0x1",
	} {
		_, err := tensor.ParseBlock(s)
		require.ErrorContains(t, err, "tensor: block \""+s+"\": want tensor, row, or RxC such as 128x128")
	}
}

func FuzzParseBlock(f *testing.F) {
	for _, s := range []string{"tensor", "row", "1x128", "allx3", "2xall", "+1x2", "1x", "0x0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := tensor.ParseBlock(s)
		if err != nil {
			return
		}
		if b.Rows < 0 || b.Cols < 0 {
			t.Fatalf("%q gives %+v", s, b)
		}
		again, err := tensor.ParseBlock(b.String())
		if err != nil || again != b {
			t.Fatalf("%q gives %+v, whose name %q gives %+v, %v", s, b, b.String(), again, err)
		}
		if s != b.String() && s != "allxall" && s != "1xall" {
			t.Fatalf("%q is another name of %v", s, b)
		}
	})
}

func TestBlockExtents(t *testing.T) {
	type size struct{ rows, cols int }
	for _, c := range []struct {
		block         tensor.Block
		matrix        size
		extents, grid size
	}{
		{tensor.Block{}, size{300, 200}, size{300, 200}, size{1, 1}},
		{tensor.Block{Rows: 1}, size{300, 200}, size{1, 200}, size{300, 1}},
		{tensor.Block{Rows: 1, Cols: 128}, size{300, 200}, size{1, 128}, size{300, 2}},
		{tensor.Block{Rows: 128, Cols: 128}, size{300, 256}, size{128, 128}, size{3, 2}},
		{tensor.Block{Rows: 128, Cols: 1}, size{128, 257}, size{128, 1}, size{1, 257}},
		{tensor.Block{Rows: 1000, Cols: 1000}, size{3, 7}, size{3, 7}, size{1, 1}},
		{tensor.Block{}, size{0, 0}, size{1, 1}, size{0, 0}},
		{tensor.Block{Rows: 2, Cols: 2}, size{0, 5}, size{1, 2}, size{0, 3}},
		{tensor.Block{Rows: 2, Cols: 2}, size{5, 0}, size{2, 1}, size{3, 0}},
		{tensor.Block{Rows: math.MaxInt, Cols: 2}, size{5, 5}, size{5, 2}, size{1, 3}},
		{tensor.Block{Rows: math.MaxInt}, size{math.MaxInt, 1}, size{math.MaxInt, 1}, size{1, 1}},
		{tensor.Block{Rows: 2}, size{math.MaxInt, 1}, size{2, 1}, size{math.MaxInt/2 + 1, 1}},
	} {
		r, cols := c.block.Extents(c.matrix.rows, c.matrix.cols)
		require.Equal(t, c.extents, size{r, cols}, "%v", c)
		r, cols = c.block.Grid(c.matrix.rows, c.matrix.cols)
		require.Equal(t, c.grid, size{r, cols}, "%v", c)
	}
	require.Equal(t, tensor.Block{Rows: 128, Cols: 1}, tensor.Block{Rows: 1, Cols: 128}.Transposed())
}
