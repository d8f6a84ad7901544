package chart

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMultiples: all have the span of the widest, in the picture and for the script, bars of one
// width, and bars of 1 a height on a logarithmic axis.
func TestMultiples(t *testing.T) {
	bars := func(xy ...float64) Chart {
		return Chart{LogY: true, Series: []Series{{Mark: Bars, Points: points(xy...)}}}
	}
	one, other := bars(-3.5, 1, 2.5, 100), bars(-9.5, 40)
	require.False(t, one.IsMultiple())
	all := Multiples([]Chart{one, other}, 1)
	require.Len(t, all, 2)
	for _, c := range all {
		require.True(t, c.IsMultiple())
		f := newFigure(c)
		require.EqualValues(t, 1, f.barWidth())
		require.LessOrEqual(t, f.x.low, -10.0)
		require.GreaterOrEqual(t, f.x.high, 3.0)
		require.LessOrEqual(t, f.y.low, 0.5)
		require.GreaterOrEqual(t, f.y.high, 100.0)
		require.Equal(t, newFigure(all[0]).x, f.x)
		require.Equal(t, newFigure(all[0]).y, f.y)
		text, err := c.JSON()
		require.NoError(t, err)
		var got struct {
			Shared struct {
				X, Y [2]float64
				Bar  float64
			}
		}
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, [2]float64{f.x.low, f.x.high}, got.Shared.X)
		require.Equal(t, [2]float64{f.y.low, f.y.high}, got.Shared.Y)
	}
	require.Less(t, newFigure(other).x.high, newFigure(all[1]).x.high)
	require.Equal(t, all, Multiples(all, 1), "of multiples")
	text, err := one.JSON()
	require.NoError(t, err)
	require.Contains(t, text, `"shared":null`)
}
