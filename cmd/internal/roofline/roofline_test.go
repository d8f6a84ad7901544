package roofline

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/lab/chart"
)

// report has two shapes, on one and on two processors.
func report() *bench.Report {
	r := &bench.Report{Seconds: 0.3, Limits: bench.Limits{
		FMA:  []bench.FMALimit{{Level: "avx2", Workers: 1, Rate: 120}, {Level: "avx2", Workers: 2, Rate: 240}},
		Read: []bench.ReadLimit{{Bytes: 16 << 20, Workers: 1, Rate: 40}, {Bytes: 256 << 20, Workers: 1, Rate: 20}},
	}}
	for _, s := range []bench.Shape{{M: 1, N: 4096, K: 4096, Experts: 1}, {M: 512, N: 512, K: 512, Experts: 1}} {
		for workers := 1; workers <= 2; workers++ {
			for _, p := range []bench.Product{
				{By: bench.Octavo, Level: "generic", Best: 7},
				{By: bench.Octavo, Level: "avx2", Best: 90},
				{By: bench.Octavo, Level: "avx2", Packed: true, Best: 100},
				{By: "gonum", Best: 15},
			} {
				p.Shape, p.Workers, p.Intensity = s, workers, s.Intensity()
				r.Products = append(r.Products, p)
			}
		}
	}
	return r
}

// words returns all text of an SVG, which must be well-formed.
func words(t *testing.T, svg []byte) string {
	var text []string
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(text, "\n")
		}
		require.NoError(t, err)
		if chars, ok := token.(xml.CharData); ok {
			text = append(text, string(chars))
		}
	}
}

func TestSVG(t *testing.T) {
	var svg bytes.Buffer
	require.NoError(t, New(report(), "octavo v1, level <avx2>").WriteSVG(&svg))
	text := words(t, svg.Bytes())
	for want, times := range map[string]int{
		"1 worker": 1, "2 workers": 1, "1x4096x4096": 2, "512x512x512": 2,
		"avx2: 120 GFLOP/s": 1, "avx2: 240 GFLOP/s": 1, "16 MiB at 40.0 GB/s": 1, "256 MiB at 20.0 GB/s": 1,
		"generic": 1, "avx2, packed": 1, "gonum": 1, "level <avx2>": 1,
	} {
		require.Equal(t, times, strings.Count(text, want), "%q in %s", want, text)
	}
}

func TestPNG(t *testing.T) {
	var data bytes.Buffer
	require.NoError(t, New(report(), "octavo").WritePNG(&data))
	image, err := png.Decode(&data)
	require.NoError(t, err)
	seen := make(map[color.NRGBA]bool)
	for x := range image.Bounds().Dx() {
		for y := range image.Bounds().Dy() {
			r, g, b, a := image.At(x, y).RGBA()
			seen[color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), uint8(a >> 8)}] = true
		}
	}
	require.True(t, seen[looks["avx2"].color] && seen[looks["generic"].color] && seen[white])
}

// TestLevelsHaveLooks has a colour for every level, in the figure and on the page.
func TestLevelsHaveLooks(t *testing.T) {
	for l := cpu.Generic; l < cpu.NumLevels; l++ {
		require.Contains(t, looks, l.String())
		require.Contains(t, keys, l.String())
	}
}

// TestBare draws what there is where nothing of the machine can be measured, of a
// level that has no look, on one processor.
func TestBare(t *testing.T) {
	r := &bench.Report{Products: []bench.Product{{
		Shape: bench.Shape{M: 8, N: 8, K: 8, Experts: 1}, By: "stranger", Workers: 1, Best: 1, Intensity: 3,
	}}}
	var svg bytes.Buffer
	require.NoError(t, New(r, "m").WriteSVG(&svg))
	text := words(t, svg.Bytes())
	require.Contains(t, text, "stranger")
	require.NotContains(t, text, "GB/s")
	r.Limits.FMA = []bench.FMALimit{{Level: "avx2", Workers: 1, Rate: 100}}
	svg.Reset()
	require.NoError(t, New(r, "m").WriteSVG(&svg))
	require.Contains(t, words(t, svg.Bytes()), "avx2: 100 GFLOP/s")
}

func TestFontsOfSVG(t *testing.T) {
	var svg bytes.Buffer
	require.NoError(t, New(report(), "octavo").WriteSVG(&svg))
	require.Contains(t, svg.String(), ",sans-serif")
	require.NotContains(t, svg.String(), "font-family:Liberation Sans", "browsers would take serifs where it is missing")
}

func TestCharts(t *testing.T) {
	all := Charts(report())
	require.Len(t, all, 2)
	one := all[0]
	require.Equal(t, "Roofline, 1 worker", one.Title)
	require.Equal(t, "Roofline, 2 workers", all[1].Title)
	require.True(t, one.LogX && one.LogY)
	series := make(map[string]chart.Series)
	for _, s := range one.Series {
		series[s.Name] = s
	}
	require.Len(t, series, 2+1+4, "slopes, roofs, products")
	thin, square := bench.Shape{M: 1, N: 4096, K: 4096, Experts: 1}, bench.Shape{M: 512, N: 512, K: 512, Experts: 1}
	require.Equal(t, []chart.Point{
		{X: thin.Intensity(), Y: 100, Name: "1x4096x4096"}, {X: square.Intensity(), Y: 100, Name: "512x512x512"},
	}, series["avx2, packed"].Points)
	require.Equal(t, series["avx2"].Color, series["avx2, packed"].Color)
	require.NotEqual(t, series["avx2"].Mark, series["avx2, packed"].Mark)

	// The slope of the fastest reading ends where the flat roof begins.
	slope, flat := series["reading 16 MiB, 40.0 GB/s"].Points, series["avx2 in registers, 120 GFLOP/s"].Points
	require.Equal(t, chart.Point{X: 3, Y: 120}, slope[1])
	require.Equal(t, chart.Point{X: 3, Y: 120}, flat[0])
	require.InDelta(t, 40, slope[0].Y/slope[0].X, 1e-9)
	require.Less(t, slope[0].X, thin.Intensity())
	require.Greater(t, flat[1].X, square.Intensity())
}

// TestPointsHaveTheirRoof beside them, once for products at the same place, behind the roof of
// their level.
func TestPointsHaveTheirRoof(t *testing.T) {
	r := report()
	thin, square := bench.Shape{M: 1, N: 4096, K: 4096, Experts: 1}, bench.Shape{M: 512, N: 512, K: 512, Experts: 1}
	for i := range r.Products {
		if p := &r.Products[i]; p.Level == "avx2" && p.Workers == 1 {
			p.Roof = min(120, 40*p.Intensity)
		}
	}
	all := Charts(r)
	var names []string
	for _, s := range all[0].Series {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{
		"reading 16 MiB, 40.0 GB/s", "reading 256 MiB, 20.0 GB/s", "avx2 in registers, 120 GFLOP/s",
		"avx2", "avx2: roof of these products", "avx2, packed", "generic", "gonum",
	}, names)
	roofs := all[0].Series[4]
	require.Equal(t, chart.Dashes, roofs.Mark)
	require.Equal(t, []chart.Point{
		{X: thin.Intensity(), Y: 40 * thin.Intensity(), Name: "1x4096x4096"}, {X: square.Intensity(), Y: 120, Name: "512x512x512"},
	}, roofs.Points)
	require.Equal(t, "512x512x512, 75% of its roof", all[0].Series[3].Points[1].Name)
	require.Contains(t, all[0].Description, "A dash")
	require.NotContains(t, all[1].Description, "A dash")
}

// TestSlopesRise to the roof, where all products are to its right too.
func TestSlopesRise(t *testing.T) {
	r := report()
	r.Products = slices.DeleteFunc(r.Products, func(p bench.Product) bool { return p.Shape.M == 1 })
	r.Limits.Read = []bench.ReadLimit{{Bytes: 16 << 20, Workers: 1, Rate: 400}}
	slope := Charts(r)[0].Series[0].Points
	require.Equal(t, chart.Point{X: 0.3, Y: 120}, slope[1])
	require.Less(t, slope[0].X, slope[1].X)
	require.InDelta(t, 400, slope[0].Y/slope[0].X, 1e-9)
}

// TestBounds checks that all points and roofs are within the axes.
func TestBounds(t *testing.T) {
	r := report()
	b := boundsOf(r)
	for _, p := range r.Products {
		require.True(t, b.minX < p.Intensity && p.Intensity < b.maxX && b.minY < p.Best && p.Best < b.maxY)
	}
	require.Greater(t, b.maxY, 240.0)
}

func TestDecades(t *testing.T) {
	var labels []string
	for _, tick := range decades(0.4, 1100) {
		labels = append(labels, tick.Label)
	}
	require.Equal(t, strings.Fields("0.5 1 2 5 10 20 50 100 200 500 1000"), labels)
}

func TestSpread(t *testing.T) {
	for _, c := range []struct{ x, want []float64 }{
		{nil, nil},
		{[]float64{5}, []float64{5}},
		{[]float64{0, 20, 100}, []float64{0, 20, 100}},
		{[]float64{0, 4}, []float64{-3, 7}},
		{[]float64{0, 4, 15}, []float64{-11. / 3, 19. / 3, 49. / 3}},
	} {
		got := spread(c.x, 10)
		require.InDeltaSlice(t, append([]float64{}, c.want...), append([]float64{}, got...), 1e-9, "%v", c.x)
		require.True(t, slices.IsSorted(got))
		for i := 1; i < len(got); i++ {
			require.GreaterOrEqual(t, got[i]-got[i-1], 10-1e-9)
		}
	}
	require.False(t, slices.ContainsFunc(spread([]float64{1, 1, 1}, 1), math.IsNaN))
}
