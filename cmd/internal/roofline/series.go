package roofline

import (
	"fmt"
	"image/color"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/picture"
)

var (
	white = color.NRGBA{0xFF, 0xFF, 0xFF, 0xFF}
	black = color.NRGBA{0x20, 0x20, 0x20, 0xFF}
	dark  = color.NRGBA{0x58, 0x58, 0x58, 0xFF}
	light = color.NRGBA{0xB8, 0xB8, 0xB8, 0xFF}
	faint = color.NRGBA{0xEC, 0xEC, 0xEC, 0xFF}
)

// glyph draws a mark.
type glyph func(to *picture.Picture, c color.NRGBA, at picture.Point)

// look is how a level is drawn, with weights as a tensor and packed.
type look struct {
	color         color.NRGBA
	plain, packed glyph
}

// looks have colours from Okabe and Ito's palette, which colour-blind readers can
// tell apart.
var looks = map[string]look{
	"generic":    {color.NRGBA{0x00, 0x9E, 0x73, 0xFF}, triangle, pyramid},
	"neon":       {color.NRGBA{0xE6, 0x9F, 0x00, 0xFF}, square, box},
	"avx2":       {color.NRGBA{0xE6, 0x9F, 0x00, 0xFF}, square, box},
	"avx512":     {color.NRGBA{0x00, 0x72, 0xB2, 0xFF}, ring, disc},
	"avx512bf16": {color.NRGBA{0xCC, 0x79, 0xA7, 0xFF}, square, box},
	"amx":        {color.NRGBA{0xD5, 0x5E, 0x00, 0xFF}, ring, disc},
}

// peerLooks are those of peers, in their order.
var peerLooks = []glyph{cross, plus}

// radius and stroke are those of marks.
const radius, stroke = 3.5, 0.5

// corners returns places about a point.
func corners(at picture.Point, xy ...float64) (all []picture.Point) {
	for i := 0; i < len(xy); i += 2 {
		all = append(all, at.Add(xy[i], xy[i+1]))
	}
	return all
}

func triangleAt(at picture.Point, r float64) []picture.Point {
	const sin, cos = 0.5, 0.866025403784439 // of 30 degrees
	r *= 1.25
	return corners(at, 0, r, -r*cos, -r*sin, r*cos, -r*sin)
}

func squareAt(at picture.Point, r float64) []picture.Point {
	r *= 0.854 // about as large as a circle
	return corners(at, -r, -r, r, -r, r, r, -r, r)
}

func triangle(to *picture.Picture, c color.NRGBA, at picture.Point) {
	to.Outline(picture.Pen{Color: c, Width: stroke}, triangleAt(at, radius)...)
}

func square(to *picture.Picture, c color.NRGBA, at picture.Point) {
	to.Outline(picture.Pen{Color: c, Width: stroke}, squareAt(at, radius)...)
}

func ring(to *picture.Picture, c color.NRGBA, at picture.Point) {
	to.Ring(picture.Pen{Color: c, Width: stroke}, at, radius)
}

// What is filled is smaller.
const filled = 2.5

func pyramid(to *picture.Picture, c color.NRGBA, at picture.Point) {
	to.Fill(c, triangleAt(at, filled)...)
}

func box(to *picture.Picture, c color.NRGBA, at picture.Point) { to.Fill(c, squareAt(at, filled)...) }

func disc(to *picture.Picture, c color.NRGBA, at picture.Point) { to.Disc(c, at, filled) }

func plus(to *picture.Picture, c color.NRGBA, at picture.Point) {
	pen := picture.Pen{Color: c, Width: stroke}
	to.Line(pen, corners(at, 0, radius, 0, -radius)...)
	to.Line(pen, corners(at, -radius, 0, radius, 0)...)
}

func cross(to *picture.Picture, c color.NRGBA, at picture.Point) {
	const r = 0.707 * radius
	pen := picture.Pen{Color: c, Width: stroke}
	to.Line(pen, corners(at, -r, -r, r, r)...)
	to.Line(pen, corners(at, -r, r, r, -r)...)
}

// series is products of one kind.
type series struct {
	by, level string
	packed    bool
	name      string
	color     color.NRGBA
	glyph     glyph
	points    []chart.Point // named after their shapes
	roofs     []chart.Point // of those that have one
}

func newSeries(p bench.Product) *series {
	s := &series{by: p.By, level: p.Level, packed: p.Packed, name: p.By, color: dark, glyph: cross}
	if p.By != bench.Octavo {
		for i, name := range bench.Peers() {
			if name == p.By {
				s.glyph = peerLooks[i%len(peerLooks)]
			}
		}
		return s
	}
	s.name = p.Level
	if l, known := looks[p.Level]; known {
		s.color, s.glyph = l.color, l.plain
		if p.Packed {
			s.glyph = l.packed
		}
	}
	if p.Packed {
		s.name += ", packed"
	}
	return s
}

func (s *series) add(p bench.Product) {
	name := p.Shape.String()
	if p.Roof > 0 {
		s.roofs = append(s.roofs, chart.Point{X: p.Intensity, Y: p.Roof, Name: name})
		name += fmt.Sprintf(", %.0f%% of its roof", p.OfRoof())
	}
	s.points = append(s.points, chart.Point{X: p.Intensity, Y: p.Best, Name: name})
}

func (s *series) draw(to *picture.Picture, p *picture.Plot) {
	for _, at := range s.points {
		s.glyph(to, s.color, p.At(at.X, at.Y))
	}
}
