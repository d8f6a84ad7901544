package explain

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpread(t *testing.T) {
	require.Equal(t, []int{0, 2, 5, 7}, Spread(10, 4))
	require.Equal(t, []int{0, 1, 2}, Spread(3, 8))
	require.Empty(t, Spread(0, 8))
}

// TestPlaces looks at wrong elements of a block of rows and columns, and at the right ones
// around it.
func TestPlaces(t *testing.T) {
	require.Equal(t, []int{0, 1, 2, 3, 4, 5}, Places(2, 3, 1000, []int{4}))

	const rows, cols = 1000, 700
	var wrong []int
	for i := 100; i < 300; i++ {
		for j := 20; j < 50; j++ {
			wrong = append(wrong, i*cols+j)
		}
	}
	slices.Reverse(wrong)
	isWrong := func(at int) bool { i, j := at/cols, at%cols; return i >= 100 && i < 300 && j >= 20 && j < 50 }
	for _, budget := range []int{128, 1 << 20} {
		places := Places(rows, cols, budget, wrong)
		require.True(t, slices.IsSorted(places))
		require.Len(t, slices.Compact(slices.Clone(places)), len(places))
		require.Subset(t, places, []int{0, rows*cols - 1}, "the corners")
		require.LessOrEqual(t, len(places), 3*min(budget/2, 512)+4*8)
		some, lines, sides := 0, map[int]bool{}, map[string]bool{}
		for _, at := range places {
			i, j := at/cols, at%cols
			if isWrong(at) {
				some++
				lines[i] = true
			}
			inside := isWrong(i*cols+20) || isWrong(100*cols+j)
			sides["above"] = sides["above"] || inside && i == 99
			sides["below"] = sides["below"] || inside && i == 300
			sides["left"] = sides["left"] || inside && j == 19
			sides["right"] = sides["right"] || inside && j == 50
		}
		require.GreaterOrEqual(t, some, min(budget, 1024)/2-8)
		require.GreaterOrEqual(t, len(lines), min(200, budget/2))
		require.Equal(t, map[string]bool{"above": true, "below": true, "left": true, "right": true}, sides)
	}
	none := Places(rows, cols, 1<<20, nil)
	require.GreaterOrEqual(t, len(none), 850, "right elements are looked at where none is known to be wrong")
}
