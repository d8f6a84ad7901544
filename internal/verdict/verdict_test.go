package verdict

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCells has one wrong element in a large v.
func TestCells(t *testing.T) {
	for _, test := range []struct{ rows, cols, height, width, down, across int }{
		{1, 1, 1, 1, 1, 1}, {224, 225, 1, 2, 224, 113}, {1000, 3, 5, 1, 200, 3}, {0, 7, 1, 1, 0, 7}, {0, 0, 1, 1, 0, 0},
	} {
		at := test.rows*test.cols - 1
		m := NewMap(test.rows, test.cols, nil, 3, func(i int) Error {
			if i == at {
				return Error{7, true}
			}
			return Error{}
		})
		require.Equal(t, [4]int{test.height, test.width, test.down, test.across}, [4]int{m.Height, m.Width, m.Down, m.Across})
		if at < 0 {
			require.Nil(t, m.Worst())
			continue
		}
		require.Equal(t, &Cell{7, test.rows - 1, test.cols - 1, m.Worst().Looked, 1}, m.Worst())
		inside := (test.rows-1)%test.height*test.width + (test.cols-1)%test.width
		require.True(t, strings.HasSuffix(m.data(), fmt.Sprintf("7,%d,1", inside)), m.data())
		require.Equal(t, m.Down, 1+strings.Count(m.data(), "\n"))
		require.Equal(t, m.Down*(m.Across-1), strings.Count(m.data(), " "))
	}
	c := Cell{Row: -1}
	for _, w := range []Error{{1, false}, {1, true}, {1, true}, {0.5, true}} {
		c.add(w, c.Row+1, 5)
	}
	require.Equal(t, Cell{1, 1, 5, 4, 3}, c)
}

func TestColors(t *testing.T) {
	shade := func(e float64, outside int) [3]uint8 {
		c := (&Cell{Error: e, Looked: 1, Outside: outside}).color()
		return [3]uint8{c.R, c.G, c.B}
	}
	require.Equal(t, [3]uint8{noError.R, noError.G, noError.B}, shade(0, 0))
	require.Equal(t, shade(1e-6, 0), shade(1e-9, 0))
	require.NotEqual(t, shade(1e-6, 0), shade(1e-5, 0))
	require.Equal(t, shade(1e6, 1), shade(1e9, 1))
	require.NotEqual(t, shade(1, 0), shade(1, 1))
	require.Equal(t, [3]uint8{0xFF, 0xC9, 0x3C}, shade(0, 1))
	require.Equal(t, [3]uint8{0xF0, 0x6A, 0x1D}, shade(1e3, 1))
	require.Equal(t, [3]uint8{0x8E, 0x1F, 0xA8}, shade(math.Inf(1), 1))
	blue := [3]uint8{0x2F, 0x7D, 0xBC}
	require.Equal(t, blue, shade(1, 0))
}

func TestGridStep(t *testing.T) {
	for n, want := range map[int]int{0: 8, 96: 8, 97: 16, 1024: 128, 1536: 128, 1537: 256, 100000: 16384} {
		require.Equal(t, want, gridStep(n), n)
	}
}
