package verdict

import (
	"image/color"
	"math"
)

// The palette has two ramps over the logarithm of the error, so that what is
// allowed and what is not never look alike: blue, darker where it is more, up to
// the bound, and yellow to red beyond it.
var (
	noError   = color.RGBA{0xF4, 0xF6, 0xF8, 0xFF}
	allowed   = ramp{{0xE6, 0xEF, 0xF7, 0xFF}, {0xA6, 0xCB, 0xE5, 0xFF}, {0x2F, 0x7D, 0xBC, 0xFF}}
	failing   = ramp{{0xFF, 0xC9, 0x3C, 0xFF}, {0xF0, 0x6A, 0x1D, 0xFF}, {0xB5, 0x0F, 0x22, 0xFF}}
	notLooked = color.RGBA{0xC9, 0xCE, 0xD3, 0xFF}
	notFinite = color.RGBA{0x8E, 0x1F, 0xA8, 0xFF}
)

// The ends of both ramps: from 10^leastAllowed to 1 in units of the bound, and from
// 1 to 10^mostFailing.
const (
	leastAllowed = -6
	mostFailing  = 6
)

type ramp [3]color.RGBA

// at returns the colour at a place from 0 to 1.
func (r ramp) at(x float64) color.RGBA {
	x = min(max(x, 0), 1) * float64(len(r)-1)
	i := min(int(x), len(r)-2)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (x-float64(i))*(float64(b)-float64(a)))) }
	a, b := r[i], r[i+1]
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xFF}
}

// color returns the colour of a cell.
func (c *Cell) color() color.RGBA {
	switch {
	case c.Looked == 0:
		return notLooked
	case c.Outside > 0 && math.IsInf(c.Error, 1):
		return notFinite
	case c.Outside > 0:
		return failing.at(math.Log10(max(c.Error, 1)) / mostFailing)
	case c.Error == 0:
		return noError
	}
	return allowed.at(1 - math.Log10(c.Error)/leastAllowed)
}
