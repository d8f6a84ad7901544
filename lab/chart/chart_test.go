package chart

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"slices"
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
	var b strings.Builder
	require.NoError(t, c.WriteElement(&b))
	svg := b.String()
	require.True(t, strings.HasPrefix(svg, "<svg"))
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); err == io.EOF {
			return svg
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

// TestEveryPointIsShownOrCounted: what a page's script gets, and what is said of the rest.
func TestEveryPointIsShownOrCounted(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	values := []float64{0, -1, 2, 3.5, 1e-300, math.NaN(), math.Inf(1), math.Inf(-1)}
	for range 300 {
		c := Chart{LogX: r.IntN(2) == 0, LogY: r.IntN(2) == 0, Series: []Series{{Name: "it", Mark: Mark(r.IntN(len(markNames)))}}}
		total := 1 + r.IntN(20)
		for range total {
			c.Series[0].Points = append(c.Series[0].Points, Point{X: values[r.IntN(len(values))], Y: values[r.IntN(len(values))]})
		}
		data, err := c.JSON()
		require.NoError(t, err)
		var got scriptData
		require.NoError(t, json.Unmarshal([]byte(data), &got))
		curve := got.Series[0]
		require.Len(t, curve.Y, len(curve.X))
		require.True(t, slices.IsSorted(curve.X))
		shown := 0
		for _, y := range curve.Y {
			if y != nil {
				shown++
			}
		}
		if shown < total {
			require.Contains(t, strings.Join(c.Missing(), " "), fmt.Sprintf("it: %d of %d points not shown", total-shown, total))
		} else {
			require.Empty(t, c.Missing())
		}
		svgOf(t, c)
	}
}

func TestGapsPartLines(t *testing.T) {
	f := newFigure(Chart{Series: []Series{{Points: points(0, 1, 1, math.NaN(), 2, 3, 3, 4, 4, math.Inf(1))}}})
	require.Equal(t, [][]Point{points(0, 1), points(2, 3, 3, 4)}, f.curves[0].runs())
	require.Equal(t, 2, strings.Count(svgOf(t, f.Chart), "stroke:"+strings.ToUpper(swatches[0].Light))+
		strings.Count(svgOf(t, f.Chart), "fill:"+strings.ToUpper(swatches[0].Light)), "a dot and a line")
}

// TestLongLinesKeepTheirShape: thinned ones have the same ends and extremes.
func TestLongLinesKeepTheirShape(t *testing.T) {
	var long []Point
	for i := range 100000 {
		long = append(long, Point{X: float64(i), Y: math.Sin(float64(i))})
	}
	long[54321].Y = 99
	long[12345].Y = -99
	thinned := newFigure(Chart{Series: []Series{{Points: long}}}).thinned(long)
	require.Less(t, len(thinned), 5*mostBuckets)
	require.Equal(t, long[0], thinned[0])
	require.Equal(t, long[len(long)-1], thinned[len(thinned)-1])
	require.Contains(t, thinned, long[54321])
	require.Contains(t, thinned, long[12345])
	require.True(t, slices.IsSortedFunc(thinned, func(a, b Point) int { return cmp.Compare(a.X, b.X) }))
}

// TestLongLinesOnLogAxes keep what is to be seen of each decade.
func TestLongLinesOnLogAxes(t *testing.T) {
	var long []Point
	for i := 1; i <= 100000; i++ {
		long = append(long, Point{X: float64(i), Y: math.Sin(float64(i))})
	}
	thinned := newFigure(Chart{LogX: true, Series: []Series{{Points: long}}}).thinned(long)
	require.Less(t, len(thinned), 5*mostBuckets)
	require.Equal(t, long[:50], thinned[:50])
}

func TestNumbersAreThoseOfTicks(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 1.5: "1.5", 1e-5: "1e-5", -1.25e-12: "-1.25e-12", 1e10: "1e10", 2.5e6: "2.5e6"} {
		require.Equal(t, want, number(x))
	}
}

// TestManyMarks: those that would hide each other are drawn once.
func TestManyMarks(t *testing.T) {
	var many []Point
	for i := range 100000 {
		many = append(many, Point{X: float64(i % 100), Y: float64(i % 7)})
	}
	f := newFigure(Chart{Series: []Series{{Mark: Dots, Points: many}}})
	require.ElementsMatch(t, many[:700], f.apart(many))
	require.Equal(t, many[:50], f.apart(many[:50]), "few are left as they are")
}

// TestCoincidingLinesAreSeen: the one below is wider.
func TestCoincidingLinesAreSeen(t *testing.T) {
	f := newFigure(Chart{Series: []Series{{Name: "FP32", Points: points(0, 1, 1, 2)}, {Name: "FP8", Points: points(0, 5, 1, 7)}, {Name: "same", Points: points(0, 5, 1, 7)}, {Name: "other", Points: points(0, 9, 1, 1)}}})
	require.Greater(t, f.curves[0].width, f.curves[3].width)
	require.Greater(t, f.curves[1].width, f.curves[2].width)
	require.Equal(t, f.curves[2].width, f.curves[3].width)
}

func TestAxesShowAll(t *testing.T) {
	f := newFigure(Chart{Zero: true, Series: []Series{{Points: []Point{{X: 1, Y: 5, Spread: 2}, {X: 3, Y: 6}}}}, Lines: []Reference{{Value: 9}, {Value: 7, Vertical: true}}})
	require.Zero(t, f.y.low)
	require.Greater(t, f.y.high, 9.0)
	require.Less(t, f.x.low, 1.0)
	require.Greater(t, f.x.high, 7.0)
	bars := newFigure(Chart{Series: []Series{{Mark: Bars, Points: points(0, 3, 2, 4)}}})
	require.Zero(t, bars.y.low, "bars begin at 0")
	require.LessOrEqual(t, bars.x.low, -1.0, "the first bar is whole")
	log := newFigure(Chart{LogY: true, Series: []Series{{Points: []Point{{X: 1, Y: 1, Spread: 5}}}}, Lines: []Reference{{Name: "none", Value: -1}}})
	require.Positive(t, log.y.low)
	require.Contains(t, log.notes[0], `The line "none" at -1 is not shown`)
}

// TestSmallDifferencesDoNotFillAnAxis, in units of which it is known what is small.
func TestSmallDifferencesDoNotFillAnAxis(t *testing.T) {
	for _, c := range []struct {
		y            string
		zero         bool
		values       []float64
		least, about float64 // of the axis: its length, and its middle
	}{
		{"SQNR in dB", false, []float64{31.5, 31.52}, 1, 31.51},
		{"SQNR, dB", true, []float64{0, 0.02}, 1, 0.5},
		{"percent of all", true, []float64{-0.001, 0}, 0.1, -0.05},
		{"nats per byte", false, []float64{2, 2}, 0.01, 2},
		{"dB", false, []float64{10, 40}, 30, 25},
	} {
		f := newFigure(Chart{Y: c.y, Zero: c.zero, Series: []Series{{Points: points(0, c.values[0], 1, c.values[1])}}})
		require.GreaterOrEqual(t, f.y.high-f.y.low, c.least*(1-1e-12), c.y)
		require.InDelta(t, c.about, (f.y.high+f.y.low)/2, 1e-9*max(1, f.y.high-f.y.low), c.y)
	}
	f := newFigure(Chart{Y: "adBe", Series: []Series{{Points: points(0, 1, 1, 1.001)}}})
	require.Less(t, f.y.high-f.y.low, 0.002, "a unit is a word")
	f = newFigure(Chart{Y: "dB", LogY: true, Series: []Series{{Points: points(0, 1, 1, 1.001)}}})
	require.Less(t, f.y.high-f.y.low, 0.002, "of a logarithm there is no such span")
}

// TestStackedBars stand on each other: the axis has their sums, and the picture ends there.
func TestStackedBars(t *testing.T) {
	c := Chart{Stacked: true, Labels: []string{"a", "b"}, Series: []Series{
		{Name: "below", Mark: Bars, Points: points(0, 3, 1, 10)},
		{Name: "above", Mark: Bars, Points: points(0, 4, 1, 20)},
	}}
	f := newFigure(c)
	require.InDelta(t, 31.5, f.y.high, 1e-9, "30, and a twentieth")
	require.Zero(t, f.y.low)
	require.Equal(t, []float64{3, 10}, f.curves[1].bases)
	require.Equal(t, []float64{0, 0}, f.curves[0].bases)
	require.Equal(t, []string{"b", "10", "20"}, c.Table(9).Rows[1], "the values are their own")
	beside := c
	beside.Stacked = false
	require.NotEqual(t, svgOf(t, beside), svgOf(t, c))

	// Of some there is no bar, or none that can be shown; a line does not stand on bars.
	c.Series = append(c.Series, Series{Name: "most", Points: points(0, 1, 1, 31)}, Series{Name: "top", Mark: Bars, Points: points(1, 2, 0, math.NaN(), 2, 5)})
	f = newFigure(c)
	require.Equal(t, []float64{30, 0}, f.curves[3].bases)
	require.InDelta(t, 33.6, f.y.high, 1e-9, "32, and a twentieth")
}

func TestDescription(t *testing.T) {
	c := Chart{X: "step", Y: "nats", Series: []Series{{Name: "FP8", Points: points(0, 3, 5, 1, 9, 2)}}, Lines: []Reference{{Name: "goal", Value: 1.5}}}
	require.Equal(t, "A chart of nats over step. FP8: 3 points, from 3 at 0 to 2 at 9; least 1 at 5, largest 3 at 0. A line at Y = 1.5: goal.", c.Describe())
	require.Contains(t, svgOf(t, c), "<desc>"+c.Describe()+"</desc>")
	c.Description = "Own words <b>."
	require.Equal(t, c.Description, c.Describe())
	require.Contains(t, svgOf(t, c), "<desc>Own words &lt;b&gt;.</desc>")
}

func TestTable(t *testing.T) {
	c := Chart{X: "step", Series: []Series{{Name: "a", Points: points(0, 3, 5, 1)}, {Points: []Point{{X: 5, Y: 2, Spread: 0.5}, {X: 5, Y: 7}, {X: 6, Y: math.NaN()}}}}}
	require.Equal(t, Table{Columns: []string{"step", "a", "series 2"}, Rows: [][]string{{"0", "3", ""}, {"5", "1", "2 ± 0.5, 7"}}}, c.Table(10))
	var long Series
	for i := range 1000 {
		long.Points = append(long.Points, Point{X: float64(i)})
	}
	thin := Chart{Series: []Series{long}}.Table(11)
	require.Equal(t, "11 of 1000 rows, evenly chosen.", thin.Left)
	require.Len(t, thin.Rows, 11)
	require.Equal(t, "999", thin.Rows[10][0])
}

func TestFiles(t *testing.T) {
	c := Chart{Title: "Loss", Series: []Series{{Points: points(0, 1, 1, 2)}}}
	var svg, picture bytes.Buffer
	require.NoError(t, c.WriteSVG(&svg))
	require.True(t, strings.HasPrefix(svg.String(), `<?xml version="1.0"?>`))
	require.Contains(t, svg.String(), "<title>Loss</title>")
	require.Contains(t, svg.String(), "sans-serif")
	require.NotContains(t, svg.String(), "Serif")
	require.NoError(t, c.WritePNG(&picture))
	img, err := png.Decode(&picture)
	require.NoError(t, err)
	require.Greater(t, img.Bounds().Dx(), 1000)
}

// TestTextFits checks that each text of a picture says how wide it is, for machines that
// have none of the fonts it was laid out for.
func TestTextFits(t *testing.T) {
	wide, narrow := strings.Repeat("W", 20), strings.Repeat("i", 20)
	svg := svgOf(t, Chart{Title: wide, X: narrow, Series: []Series{{Points: points(0, 1, 1, 2)}}})
	require.Equal(t, strings.Count(svg, "<text "), strings.Count(svg, `lengthAdjust="spacingAndGlyphs"`))
	length := func(text string) (points float64) {
		before, _, found := strings.Cut(svg, ">"+text+"</text>")
		require.True(t, found)
		_, err := fmt.Sscanf(before[strings.LastIndex(before, "textLength="):], `textLength="%f"`, &points)
		require.NoError(t, err)
		return points
	}
	// Arial's W is 1933/2048 of the size wide, its i 455/2048.
	require.InDelta(t, 20*titleSize*1933/2048., length(wide), 0.5)
	require.InDelta(t, 20*10.5*455/2048., length(narrow), 0.5)
}
