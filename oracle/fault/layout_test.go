package fault

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// inOrder lists the places of a grid in the order of memory, as the libraries that use a
// layout describe it; {-1, -1} is a gap.
func inOrder(l GridLayout, rows, cols int) (all [][2]int) {
	add := func(r, c int) {
		if r >= rows || c >= cols {
			r, c = -1, -1
		}
		all = append(all, [2]int{r, c})
	}
	up := func(n, to int) int { return (n + to - 1) / to }
	switch l {
	case RowMajor:
		for r := range rows {
			for c := range cols {
				add(r, c)
			}
		}
	case columnMajor:
		for c := range cols {
			for r := range rows {
				add(r, c)
			}
		}
	case aligned:
		for c := range cols {
			for r := range up(rows, 4) * 4 {
				add(r, c)
			}
		}
	case packed, packedReversed:
		for word := range up(cols, 4) {
			for r := range up(rows, 4) * 4 {
				for b := range 4 {
					if l == packedReversed {
						b = 3 - b
					}
					add(r, word*4+b)
				}
			}
		}
	case Tiles128x4:
		// [tiles of rows, tiles of columns, 32, 4, 4]: row 32*j + i of a tile is at [i, j].
		for tr := range up(rows, 128) {
			for tc := range up(cols, 4) {
				for i := range 32 {
					for j := range 4 {
						for c := range 4 {
							add(tr*128+32*j+i, tc*4+c)
						}
					}
				}
			}
		}
	case padded:
		for r := range rows {
			for c := range 4 * up(cols, 4) {
				add(r, c)
			}
		}
	case tiles8x4:
		for tr := range up(rows, 8) {
			for tc := range up(cols, 4) {
				for i := range 8 {
					for c := range 4 {
						add(tr*8+i, tc*4+c)
					}
				}
			}
		}
	}
	return all
}

func TestLayouts(t *testing.T) {
	for l := range GridLayout(len(layouts.Names)) {
		for _, size := range [][2]int{{1, 1}, {3, 5}, {8, 4}, {128, 4}, {130, 9}, {256, 16}, {31, 1}, {1, 31}} {
			rows, cols := size[0], size[1]
			places := inOrder(l, rows, cols)
			require.Len(t, places, l.size(rows, cols), "%v of %v", l, size)
			seen := 0
			for at, p := range places {
				if p[0] >= 0 {
					require.Equal(t, at, l.Index(p[0], p[1], rows, cols), "%v of %v: %v", l, size, p)
					seen++
				}
			}
			require.Equal(t, rows*cols, seen)
		}
		text, err := l.MarshalText()
		require.NoError(t, err)
		var again GridLayout
		require.NoError(t, again.UnmarshalText(text))
		require.Equal(t, l, again)
		require.NotEmpty(t, l.in())
	}
}

// TestUnknownLayout has a text.
func TestUnknownLayout(t *testing.T) {
	f := Fault{Kind: "scales-layout", Of: A, Read: 99}
	require.Equal(t, "the scales of A, row-major, are read as "+GridLayout(99).String(), f.String())
}
