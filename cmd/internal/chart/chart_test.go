package chart

import (
	"encoding/xml"
	"fmt"
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
	require.Contains(t, svg, "nobody: no points")
	require.NotContains(t, svg, ">nobody<", "it has nothing to look for")
}

func TestOneSeriesNeedsNoName(t *testing.T) {
	require.NotContains(t, svgOf(t, Chart{Series: []Series{{Name: "alone", Points: points(0, 1, 1, 2)}}}), ">alone<")
}

func TestLabelsStandAtWholeNumbers(t *testing.T) {
	svg := svgOf(t, Chart{Labels: []string{"FP32", "FP8"}, Series: []Series{{Points: points(0, 1, 1, 2), Mark: Dots}}})
	require.Contains(t, svg, "FP32")
	require.Contains(t, svg, "FP8")
}

// TestWhatCannotBeDrawnIsCounted: a plot of it would panic or be empty.
func TestWhatCannotBeDrawnIsCounted(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	bad := Series{Name: "bad", Points: points(0, nan, nan, 0, 1, inf, 2, 5, 3, -1, -1, 3), Mark: Dots}
	for _, c := range []struct {
		chart Chart
		want  []Point
	}{
		{Chart{}, points(-1, 3, 2, 5, 3, -1)},
		{Chart{LogX: true}, points(2, 5, 3, -1)},
		{Chart{LogY: true}, points(-1, 3, 2, 5)},
		{Chart{LogX: true, LogY: true}, points(2, 5)},
	} {
		c.chart.Series = []Series{bad, {Points: points(1, 0)}}
		f := newFigure(c.chart)
		require.Equal(t, c.want, f.curves[0].shown())
		require.Equal(t, len(bad.Points)-len(c.want), f.curves[0].hidden)
		require.Contains(t, f.notes[0], fmt.Sprintf("bad: %d of 6 points not shown", len(bad.Points)-len(c.want)))
		require.Contains(t, svgOf(t, c.chart), "not shown")
	}
}

func TestSpreadIsDrawn(t *testing.T) {
	stroke := "stroke:" + strings.ToUpper(string(swatches[0].Light))
	plain := Series{Points: []Point{{X: 0, Y: 1}, {X: 1, Y: 2}}, Mark: Dots}
	require.Zero(t, strings.Count(svgOf(t, Chart{Series: []Series{plain}}), stroke))
	spread := Series{Points: []Point{{X: 0, Y: 1, Spread: 0.5}, {X: 1, Y: 2, Spread: 0.5}}, Mark: Dots}
	require.Equal(t, 6, strings.Count(svgOf(t, Chart{Series: []Series{spread}}), stroke), "a bar and two caps each")
}

func TestNamesOfPoints(t *testing.T) {
	names := func(points ...Point) string {
		data, err := Chart{Series: []Series{{Points: points}}}.JSON()
		require.NoError(t, err)
		_, after, _ := strings.Cut(string(data), `"names":`)
		return strings.TrimSuffix(after, "}]}")
	}
	require.Equal(t, "null", names(Point{X: 1}, Point{X: 2}))
	require.Equal(t, `["a","b",""]`, names(Point{X: 2, Name: "b"}, Point{X: 1, Name: "a"}, Point{X: 3}))
}

// TestNothingButZero: an axis of no length would show nothing.
func TestNothingButZero(t *testing.T) {
	for _, c := range []Chart{
		{Zero: true, Series: []Series{{Points: points(1, 0, 2, 0)}}},
		{Series: []Series{{Points: points(1, 0, 2, 0), Mark: Bars}}},
	} {
		require.Equal(t, span{0, 1}, newFigure(c).y)
	}
	require.Equal(t, span{-1.05, 0}, newFigure(Chart{Zero: true, Series: []Series{{Points: points(1, -1)}}}).y)
}
