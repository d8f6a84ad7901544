package chart

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The backgrounds of pages.
const lightPaper, darkPaper = "#ffffff", "#14181c"

// linear returns the channels of a colour in proportion to light.
func linear(hex string) (light [3]float64) {
	c := RGB(hex)
	for i, v := range []uint8{c.R, c.G, c.B} {
		x := float64(v) / 255
		if light[i] = x / 12.92; x > 0.04045 {
			light[i] = math.Pow((x+0.055)/1.055, 2.4)
		}
	}
	return light
}

// contrast is that of the guidelines for web content.
func contrast(a, b string) float64 {
	luminance := func(hex string) float64 {
		c := linear(hex)
		return 0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2]
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestColorsStandOut(t *testing.T) {
	for _, s := range swatches {
		require.GreaterOrEqual(t, contrast(s.Light, lightPaper), 3.0, "%s, light", s.name)
		require.GreaterOrEqual(t, contrast(s.Dark, darkPaper), 3.0, "%s, dark", s.name)
	}
}

// lab returns a colour where distances are about what eyes see.
func lab(hex string) [3]float64 {
	c := linear(hex)
	f := func(x float64) float64 {
		if x > 216.0/24389 {
			return math.Cbrt(x)
		}
		return (x*24389/27 + 16) / 116
	}
	x := f((0.4124*c[0] + 0.3576*c[1] + 0.1805*c[2]) / 0.9505)
	y := f(0.2126*c[0] + 0.7152*c[1] + 0.0722*c[2])
	z := f((0.0193*c[0] + 0.1192*c[1] + 0.9505*c[2]) / 1.089)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func TestColorsAreTold(t *testing.T) {
	distance := func(a, b string) float64 {
		p, q := lab(a), lab(b)
		return math.Sqrt((p[0]-q[0])*(p[0]-q[0]) + (p[1]-q[1])*(p[1]-q[1]) + (p[2]-q[2])*(p[2]-q[2]))
	}
	for i, a := range swatches {
		for _, b := range swatches[:i] {
			require.Greater(t, distance(a.Light, b.Light), 25.0, "%s and %s, light", a.name, b.name)
			require.Greater(t, distance(a.Dark, b.Dark), 25.0, "%s and %s, dark", a.name, b.name)
		}
	}
}

func named(names ...string) (c Chart) {
	for _, name := range names {
		c.Series = append(c.Series, Series{Name: name})
	}
	return c
}

func colorsOf(c Chart) map[string]Key {
	all := make(map[string]Key)
	for _, s := range c.Series {
		all[s.Name] = s.Color
	}
	return all
}

func TestSameThingHasSameColor(t *testing.T) {
	var page Colors
	first := colorsOf(page.Assign(named("FP32", "delayed", "blocks", "FP8")))
	second := colorsOf(page.Assign(named("rows", "FP8", "blocks", "delayed")))
	for _, name := range []string{"FP8", "delayed", "blocks"} {
		require.Equal(t, first[name], second[name], name)
	}
	require.Equal(t, Key("vermilion"), second["FP8"])
	for name, swatch := range first {
		require.NotEqual(t, swatch, second["rows"], name)
	}
	var full Colors
	before := colorsOf(full.Assign(named("a", "b", "c", "d", "e", "f")))
	after := colorsOf(full.Assign(named("new", "a", "b", "c", "d", "e", "f")))
	delete(after, "new")
	require.Equal(t, before, after, "a new series before them takes no colour from them")
	held := Chart{Series: []Series{{Name: "FP8"}, {Name: "FP8, held out", Mark: Rings}, {Name: "gap", Color: "FP32"}}}
	require.Equal(t, map[string]Key{"FP8": "vermilion", "FP8, held out": "vermilion", "gap": "blue"}, colorsOf(page.Assign(held)))
}

// TestSeriesLookDifferent: of a chart with up to twice as many lines as swatches no two look the same.
func TestSeriesLookDifferent(t *testing.T) {
	var names []string
	for i := range 2 * len(swatches) {
		names = append(names, fmt.Sprint("series ", i))
		var page Colors
		page.Assign(named("series 3", "another", "FP8"))
		seen := make(map[string]bool)
		for _, s := range page.Assign(named(names...)).Series {
			look := fmt.Sprint(s.Color, s.Dashed)
			require.False(t, seen[look], "%d series: %s", len(names), look)
			seen[look] = true
		}
	}
}

func TestColorOf(t *testing.T) {
	require.Equal(t, ColorOf("blue"), ColorOf("FP32"))
	require.Equal(t, ColorOf("FP8"), ColorOf("FP8, held out"))
	require.Equal(t, ColorOf("grey"), ColorOf("something else"))
}
