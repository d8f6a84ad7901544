package page

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/chart"
)

// heatValue is that of a map that tests know: no two cells have the same.
func heatValue(row, column, part int) float64 {
	return float64(row) + float64(column)/1e4 + float64(part)/10
}

// heatMap has groups of so many rows each.
func heatMap(groups, each, columns int) HeatMap {
	h := HeatMap{Title: "What was lost", Row: "layer", Column: "step", Parts: []string{"input", "weight"}}
	m := Measure{Name: "lost", Unit: "%", Classes: []Class{{0, "none", chart.Shade(0)}, {0.5, "some", chart.Shade(1)}, {math.Inf(1), "not finite", chart.Bad}}}
	for g := range groups {
		for r := range each {
			h.Rows = append(h.Rows, HeatRow{fmt.Sprintf("%d.%d", g, r), fmt.Sprintf("layer %d", g)})
			for c := range columns {
				m.Values = append(m.Values, heatValue(g*each+r, c, 0), heatValue(g*each+r, c, 1))
			}
		}
	}
	for c := range columns {
		h.Columns = append(h.Columns, float64(10*c))
	}
	h.Measures = []Measure{m}
	return h
}

func heatPage(t *testing.T, h HeatMap) string {
	var b bytes.Buffer
	var p Page
	p.Put("<h1>A map</h1>")
	p.HeatMap(h)
	require.NoError(t, p.Write(&b, "A map"))
	require.NotContains(t, b.String(), "%!")
	return b.String()
}

var heatJSON = regexp.MustCompile(`<script type="application/json">(.*)</script>`)

// dataOf returns what the script gets.
func dataOf(t *testing.T, html string) (d struct {
	Rows     []string
	From, To []float64
	Measures []struct {
		Parts [][]json.Number
		Where []int
		When  []float64
	}
}) {
	found := heatJSON.FindStringSubmatch(html)
	require.Len(t, found, 2)
	require.NoError(t, json.Unmarshal([]byte(found[1]), &d))
	return d
}

// TestHeatMapHasEveryCell of a map that fits.
func TestHeatMapHasEveryCell(t *testing.T) {
	h := heatMap(2, 3, 4)
	h.Measures[0].Values[0] = math.NaN()
	h.Measures[0].Values[5] = math.Inf(1)
	html := heatPage(t, h)
	require.NotContains(t, html, "neighbours")
	require.NotContains(t, html, "is the largest value of")
	d := dataOf(t, html)
	require.Equal(t, []string{"0.0", "0.1", "0.2", "1.0", "1.1", "1.2"}, d.Rows)
	require.Equal(t, []float64{0, 10, 20, 30}, d.From)
	require.Equal(t, d.From, d.To)
	for part := range 2 {
		for row := range 6 {
			for column := range 4 {
				got := d.Measures[0].Parts[part][row*4+column].String()
				switch {
				case row == 0 && column == 0 && part == 0:
					require.Empty(t, got, "null")
				case row == 0 && column == 2 && part == 1:
					require.Equal(t, "1e999", got)
				default:
					require.Equal(t, fmt.Sprintf("%.4g", heatValue(row, column, part)), got)
				}
			}
		}
	}
	require.Contains(t, html, "The largest of lost, % is not finite, of 0.0 weight at step 20.")
	require.Contains(t, html, `<tr><td>1.2</td><td class="number">5.1</td><td class="number">30</td><td>1.2 weight</td></tr>`)
}

// TestHeatMapIsBinned: groups are one row, and each cell is the largest value of those in it.
func TestHeatMapIsBinned(t *testing.T) {
	for _, c := range []struct {
		groups, each, columns int
		rows, length          int // of the map, and columns in one of its
		first                 string
	}{{100, 7, 1000, 100, 5, "layer 0"}, {101, 2, 201, 51, 2, "layer 0 to layer 1"}, {3, 40, 10, 3, 1, "layer 0"}} {
		html := heatPage(t, heatMap(c.groups, c.each, c.columns))
		d := dataOf(t, html)
		require.Len(t, d.Rows, c.rows)
		require.Equal(t, c.first, d.Rows[0])
		require.Contains(t, html, fmt.Sprintf("There are %d rows, of which neighbours are shown as one: %d", c.groups*c.each, c.rows))
		require.Equal(t, c.length > 1, strings.Contains(html, fmt.Sprintf("A column is the largest value of %d of the %d values of step", c.length, c.columns)))
		in := c.each * ((c.groups + c.rows - 1) / c.rows)
		n := (c.columns + c.length - 1) / c.length
		require.Len(t, d.From, n)
		for row := range d.Rows {
			for column := range n {
				last, end := min(c.groups*c.each, (row+1)*in)-1, min(c.columns, (column+1)*c.length)-1
				require.Equal(t, fmt.Sprintf("%.4g", heatValue(last, end, 1)), d.Measures[0].Parts[1][row*n+column].String())
				require.Equal(t, last, d.Measures[0].Where[row*n+column])
				require.Equal(t, float64(10*end), d.Measures[0].When[row*n+column])
			}
		}
	}
}

// TestHeatMapWithoutScripts has a picture with a pixel for each cell, in the colour of its class.
func TestHeatMapWithoutScripts(t *testing.T) {
	h := heatMap(1, 2, 3)
	h.Measures[0].Values = []float64{0, 0.1, 0.5, 0, math.NaN(), math.NaN(), 0, math.Inf(1), 0, 0, 0.49, 0.7}
	found := regexp.MustCompile(`data:image/png;base64,([^"]*)"`).FindStringSubmatch(heatPage(t, h))
	require.Len(t, found, 2)
	file, err := base64.StdEncoding.DecodeString(found[1])
	require.NoError(t, err)
	picture, err := png.Decode(bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, 3, picture.Bounds().Dx())
	for i, class := range []int{0, 1, -1, 2, 0, 1} {
		r, g, b, a := picture.At(i%3, i/3).RGBA()
		if class < 0 {
			require.Zero(t, a)
			continue
		}
		require.Equal(t, h.Measures[0].Classes[class].Color.Light, fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8))
	}
}

func TestEmptyHeatMap(t *testing.T) {
	html := heatPage(t, HeatMap{Title: "Nothing"})
	require.Contains(t, html, "Nothing: there is nothing to show.")
	require.NotContains(t, html, "<figure")
}
