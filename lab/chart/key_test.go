package chart

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKeyServesTwiceInAChart: two lines about the same thing have its colour where one is
// dashed, in the first chart of a page as in the others.
func TestKeyServesTwiceInAChart(t *testing.T) {
	var colors Colors
	c := Chart{Series: []Series{{Name: "a"}, {Name: "b"}, {Name: "a, limit", Color: "a", Dashed: true}, {Name: "b, limit", Color: "b", Dashed: true}}}
	for range 2 {
		got := colors.Assign(c).Series
		require.NotEqual(t, got[0].Color, got[1].Color)
		require.Equal(t, got[0].Color, got[2].Color)
		require.Equal(t, got[1].Color, got[3].Color)
	}
	alike := colors.Assign(Chart{Series: []Series{{Name: "a"}, {Name: "again", Color: "a"}}}).Series
	require.NotEqual(t, alike[0].Color, alike[1].Color, "drawn the same, they are told apart by colour")
}
