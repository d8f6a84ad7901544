package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
)

// TestWithLimit: a limit is drawn where a point is not far within it.
func TestWithLimit(t *testing.T) {
	c := chart.Chart{Series: []chart.Series{{Points: []chart.Point{{X: 1, Y: 0.1}, {X: 2, Y: -0.3}}}}}
	line := []chart.Reference{{Name: "limit", Value: 1}}
	require.Equal(t, line, WithLimit(c, "limit", 1).Lines)
	require.Empty(t, WithLimit(c, "limit", 2).Lines)
	require.Empty(t, c.Lines)
	require.Len(t, WithLimit(WithLimit(c, "limit", 1), "limit", -1).Lines, 2)
}
