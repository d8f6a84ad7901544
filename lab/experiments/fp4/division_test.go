package fp4

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab"
)

// TestDivision finds what declaration.toml says that another program found.
func TestDivision(t *testing.T) {
	var p lab.Steps
	list, err := measureDivisions(t.Context(), &p, 1, 4000)
	require.NoError(t, err)
	require.Equal(t, 504000, list[randomDivision].values)
	require.Zero(t, list[randomDivision].differ)
	require.Equal(t, 882, list[boundaryDivision].values)
	require.Equal(t, 42, list[boundaryDivision].differ)
	require.Equal(t, 74, list[besideDivision].differ, "with those on boundaries, 116")
	require.InDelta(t, 0.0476, list[boundaryDivision].share(), 5e-5)
}
