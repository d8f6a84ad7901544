package chart

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func points(xy ...float64) (all []Point) {
	for i := 0; i < len(xy); i += 2 {
		all = append(all, Point{X: xy[i], Y: xy[i+1]})
	}
	return all
}

func svgOf(t *testing.T, c Chart) string {
	svg, err := c.SVG()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(svg), "<svg"))
	d := xml.NewDecoder(strings.NewReader(string(svg)))
	for {
		if _, err := d.Token(); err == io.EOF {
			return string(svg)
		} else {
			require.NoError(t, err)
		}
	}
}

func TestChartNamesWhatItShows(t *testing.T) {
	svg := svgOf(t, Chart{Title: "Loss", X: "step", Y: "nats", Series: []Series{
		{Name: "first", Points: points(0, 1, 1, 2)},
		{Name: "second", Points: points(0, 3, 1, 1), Mark: Joined, Dashed: true},
		{Name: "third", Points: points(0, 3), Mark: Crosses},
		{Name: "nobody"},
	}})
	for _, want := range []string{"Loss", "step", "nats", "first", "second", "third", "stroke-dasharray"} {
		require.Contains(t, svg, want)
	}
	require.NotContains(t, svg, "nobody", "it has no points")
}

func TestOneSeriesNeedsNoName(t *testing.T) {
	require.NotContains(t, svgOf(t, Chart{Series: []Series{{Name: "alone", Points: points(0, 1, 1, 2)}}}), "alone")
}

func TestLabelsStandAtWholeNumbers(t *testing.T) {
	svg := svgOf(t, Chart{Labels: []string{"FP32", "FP8"}, Series: []Series{{Points: points(0, 1, 1, 2), Mark: Dots}}})
	require.Contains(t, svg, "FP32")
	require.Contains(t, svg, "FP8")
}

// TestWhatCannotBeDrawnIsLeftOut: a plot of it would panic or be empty.
func TestWhatCannotBeDrawnIsLeftOut(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	bad := Series{Points: points(0, nan, nan, 0, 1, inf, 2, 5, 3, -1, -1, 3)}
	require.Equal(t, points(2, 5, 3, -1, -1, 3), Chart{}.visible(bad).Points)
	require.Equal(t, points(2, 5, 3, -1), Chart{LogX: true}.visible(bad).Points)
	require.Equal(t, points(2, 5, -1, 3), Chart{LogY: true}.visible(bad).Points)
	spread := Series{Points: []Point{{1, 1, 2}, {1, 3, 2}, {1, 1, nan}}}
	require.Equal(t, []Point{{1, 3, 2}}, Chart{LogY: true}.visible(spread).Points)
	svgOf(t, Chart{LogX: true, LogY: true, Series: []Series{bad, {Points: points(1, 0)}}})
}

func TestSpreadIsDrawn(t *testing.T) {
	const stroke = "stroke:#0072B2"
	plain := Series{Points: []Point{{0, 1, 0}, {1, 2, 0}}, Mark: Dots}
	require.Zero(t, strings.Count(svgOf(t, Chart{Series: []Series{plain}}), stroke))
	spread := Series{Points: []Point{{0, 1, 0.5}, {1, 2, 0.5}}, Mark: Dots}
	require.Equal(t, 6, strings.Count(svgOf(t, Chart{Series: []Series{spread}}), stroke), "a bar and two caps each")
}

func TestTicksAreDistinct(t *testing.T) {
	for _, limits := range [][2]float64{{2.51, 2.63}, {0, 300}, {-0.03, 0.034}, {1.2345, 1.2405}} {
		seen := make(map[string]bool)
		for _, tick := range (distinct{}).Ticks(limits[0], limits[1]) {
			if tick.Label == "" {
				continue
			}
			require.False(t, seen[tick.Label], "%v: two ticks %s", limits, tick.Label)
			seen[tick.Label] = true
		}
		require.Greater(t, len(seen), 1, limits)
	}
}
