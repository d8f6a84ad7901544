package chart

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Key names what a colour stands for.
type Key string

// Color is a colour on a light background and its counterpart on a dark one, as #rrggbb.
type Color struct{ Light, Dark string }

// swatches are variants of the colours of Okabe and Ito, which colour-blind readers can tell apart, each with a contrast
// of at least 3 to the backgrounds of pages. The last two are for when all others are in use.
var swatches = []struct {
	name Key
	Color
}{
	{"blue", Color{"#0067b0", "#4ba6e8"}},
	{"vermilion", Color{"#d04f00", "#ff7f3f"}},
	{"green", Color{"#00865f", "#27c498"}},
	{"pink", Color{"#c75a9b", "#f3a6cf"}},
	{"ochre", Color{"#a87400", "#f2c53a"}},
	{"violet", Color{"#5b3fc0", "#a48cff"}},
	{"grey", Color{"#77787a", "#a3a6aa"}},
	{"ink", Color{"#1d2329", "#f1f3f5"}},
}

const neutral = 2 // of the swatches

// Bad is the colour of what is wrong.
var Bad = Color{"#b00020", "#ff8a94"}

// Shade returns the colour of a share of what there may be of something, from 0 to 1: of more
// contrast to the background the larger it is.
func Shade(share float64) Color {
	between := func(from, to string) string {
		a, b := RGB(from), RGB(to)
		mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + share*(float64(y)-float64(x)))) }
		return fmt.Sprintf("#%02x%02x%02x", mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B))
	}
	return Color{between("#e8edf2", "#004a85"), between("#232a31", "#9bd2ff")}
}

// meanings are things that many charts show.
var meanings = map[Key]Key{
	"FP32": "blue", "FP8": "vermilion", "BF16": "green",
	"input": "violet", "weight": "ochre", "gradient": "pink",
}

// ColorOf returns the colour of a key: that of the known thing, or swatch, that it names. Other keys are grey; Colors
// gives them colours of their own.
func ColorOf(key Key) Color {
	if known, ok := known(key); ok {
		key = known
	}
	for _, s := range swatches {
		if s.name == key {
			return s.Color
		}
	}
	return ColorOf("grey")
}

// known returns the swatch of a thing that has its own. "FP8, held out" is about FP8.
func known(key Key) (swatch Key, ok bool) {
	for _, s := range swatches {
		if s.name == key {
			return key, true
		}
	}
	if swatch, ok = meanings[key]; ok {
		return swatch, true
	}
	about, _, _ := strings.Cut(string(key), ", ")
	swatch, ok = meanings[Key(about)]
	return swatch, ok
}

// Colors gives the same thing the same colour in all charts of a page. The zero value is ready for use.
type Colors struct {
	given map[Key]Key // swatches
}

// Assign returns the chart with the name of a swatch as the key of each series. Within a chart, a swatch serves again
// only when all are in use, or for series of the same key that are drawn differently.
func (c *Colors) Assign(chart Chart) Chart {
	if c.given == nil {
		c.given = make(map[Key]Key)
	}
	series := slices.Clone(chart.Series)
	used := make(map[Key]int)
	give := func(i int, swatch Key) {
		series[i].Color = swatch
		used[swatch]++
	}
	// First what already has a colour, then the others.
	for i, s := range series {
		swatch, ok := known(s.key())
		if !ok {
			swatch, ok = c.given[s.key()]
		}
		if ok && !looksAlike(series[:i], s, swatch) {
			give(i, swatch)
			c.given[s.key()] = swatch
		}
	}
	for i, s := range series {
		if isSwatch(s.Color) {
			continue
		}
		if swatch, ok := c.given[s.key()]; ok && !looksAlike(series, s, swatch) {
			give(i, swatch) // as to the first series of its key, just now
			continue
		}
		swatch := c.leastUsed(used)
		if _, ok := c.given[s.key()]; !ok {
			c.given[s.key()] = swatch
		}
		if s.Mark.joins() && looksAlike(series, s, swatch) {
			series[i].Dashed = !s.Dashed
		}
		give(i, swatch)
	}
	chart.Series = series
	return chart
}

func (s Series) key() Key {
	if s.Color != "" {
		return s.Color
	}
	return Key(s.Name)
}

func isSwatch(key Key) bool {
	for _, s := range swatches {
		if s.name == key {
			return true
		}
	}
	return false
}

// looksAlike reports whether one of the series has that swatch and is drawn like s.
func looksAlike(series []Series, s Series, swatch Key) bool {
	return slices.ContainsFunc(series, func(other Series) bool {
		return other.Color == swatch && other.Mark == s.Mark && other.Dashed == s.Dashed
	})
}

// leastUsed returns the swatch that the fewest series of this chart have, and of those the one that the fewest
// things of all charts have.
func (c *Colors) leastUsed(used map[Key]int) Key {
	everywhere := make(map[Key]int)
	for _, swatch := range c.given {
		everywhere[swatch]++
	}
	colored := len(swatches) - neutral
	best, least := swatches[0].name, math.MaxInt
	for i, s := range swatches {
		if cost := 1000*used[s.name] + 500*(i/colored) + everywhere[s.name]; cost < least {
			best, least = s.name, cost
		}
	}
	return best
}

// RGB returns the colour of #rrggbb.
func RGB(hex string) color.NRGBA {
	v, err := strconv.ParseUint(hex[1:], 16, 24)
	if err != nil {
		panic("chart: " + hex + " is no colour")
	}
	return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
}
