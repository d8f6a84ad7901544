package chart

import "strings"

// Key names what a colour stands for.
type Key string

// Color is a colour on a light background and its counterpart on a dark one, as #rrggbb.
type Color struct{ Light, Dark string }

// swatches are variants of the colours of Okabe and Ito, which colour-blind readers can tell apart, each with a contrast
// of at least 3 to the backgrounds of pages.
var swatches = []struct {
	name Key
	Color
}{
	{"blue", Color{"#0072b2", "#4ba6e8"}},
	{"vermilion", Color{"#d04f00", "#ff7f3f"}},
	{"green", Color{"#00865f", "#27c498"}},
	{"purple", Color{"#b8508c", "#ec9bc8"}},
	{"ochre", Color{"#a87400", "#f2b53a"}},
	{"sky", Color{"#3a8fc4", "#9bd7f7"}},
	{"grey", Color{"#77787a", "#a3a6aa"}},
	{"ink", Color{"#1d2329", "#f1f3f5"}},
}

// meanings are things that many charts show.
var meanings = map[Key]Key{
	"FP32": "blue", "FP8": "vermilion", "BF16": "green",
	"input": "sky", "weight": "purple", "gradient": "ochre",
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
	series := append([]Series(nil), chart.Series...)
	used := make(map[Key]int)
	for i := range series {
		s := &series[i]
		if swatch, ok := known(s.key()); ok && !sameLook(series[:i], *s, swatch) {
			s.Color = swatch
			used[swatch]++
		}
	}
	for i := range series {
		s := &series[i]
		if isSwatch(s.Color) {
			continue
		}
		swatch, ok := c.given[s.key()]
		if !ok || used[swatch] > 0 {
			swatch = c.leastUsed(used)
		}
		if _, ok := c.given[s.key()]; !ok {
			c.given[s.key()] = swatch
		}
		s.Color = swatch
		used[swatch]++
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

// sameLook reports whether one of the series has that swatch and is drawn like s.
func sameLook(series []Series, s Series, swatch Key) bool {
	for _, other := range series {
		if other.Color == swatch && other.Mark == s.Mark && other.Dashed == s.Dashed {
			return true
		}
	}
	return false
}

// leastUsed returns the swatch that the fewest series of this chart have, and of those the one that the fewest
// things of all charts have.
func (c *Colors) leastUsed(used map[Key]int) Key {
	everywhere := make(map[Key]int)
	for _, swatch := range c.given {
		everywhere[swatch]++
	}
	best := swatches[0].name
	for _, s := range swatches[1:] {
		if used[s.name] < used[best] || used[s.name] == used[best] && everywhere[s.name] < everywhere[best] {
			best = s.name
		}
	}
	return best
}
