package roofline

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/octavo-fp8/octavo/bench"
)

// handler lays text out.
var handler text.Handler = plot.DefaultTextHandler

var (
	white = color.RGBA{0xFF, 0xFF, 0xFF, 0xFF}
	black = color.RGBA{0x20, 0x20, 0x20, 0xFF}
	dark  = color.RGBA{0x58, 0x58, 0x58, 0xFF}
	light = color.RGBA{0xB8, 0xB8, 0xB8, 0xFF}
	faint = color.RGBA{0xEC, 0xEC, 0xEC, 0xFF}
)

// look is how a level is drawn, with weights as a tensor and packed.
type look struct {
	color         color.RGBA
	plain, packed draw.GlyphDrawer
}

// looks have colours from Okabe and Ito's palette, which colour-blind readers can
// tell apart.
var looks = map[string]look{
	"generic": {color.RGBA{0x00, 0x9E, 0x73, 0xFF}, draw.TriangleGlyph{}, draw.PyramidGlyph{}},
	"neon":    {color.RGBA{0xE6, 0x9F, 0x00, 0xFF}, draw.SquareGlyph{}, draw.BoxGlyph{}},
	"avx2":    {color.RGBA{0xE6, 0x9F, 0x00, 0xFF}, draw.SquareGlyph{}, draw.BoxGlyph{}},
	"avx512":  {color.RGBA{0x00, 0x72, 0xB2, 0xFF}, draw.RingGlyph{}, draw.CircleGlyph{}},
	"amx":     {color.RGBA{0xD5, 0x5E, 0x00, 0xFF}, draw.RingGlyph{}, draw.CircleGlyph{}},
}

// peerLooks are those of peers, in their order.
var peerLooks = []draw.GlyphDrawer{draw.CrossGlyph{}, draw.PlusGlyph{}}

// series is products of one kind. It is a [plot.Plotter].
type series struct {
	by, level string
	packed    bool
	name      string
	glyph     draw.GlyphStyle
	points    plotter.XYs
	shapes    []string // of the points
}

func newSeries(p bench.Product) *series {
	s := &series{by: p.By, level: p.Level, packed: p.Packed, name: p.By}
	s.glyph = draw.GlyphStyle{Color: dark, Radius: vg.Points(3.5), Shape: draw.CrossGlyph{}}
	if p.By != bench.Octavo {
		for i, name := range bench.Peers() {
			if name == p.By {
				s.glyph.Shape = peerLooks[i%len(peerLooks)]
			}
		}
		return s
	}
	s.name = p.Level
	l := looks[p.Level]
	s.glyph.Color, s.glyph.Shape = l.color, l.plain
	if p.Packed {
		s.name += ", packed"
		s.glyph.Shape, s.glyph.Radius = l.packed, vg.Points(2.5)
	}
	return s
}

func (s *series) add(p bench.Product) {
	s.points = append(s.points, plotter.XY{X: p.Intensity, Y: p.Best})
	s.shapes = append(s.shapes, p.Shape.String())
}

// Plot implements [plot.Plotter].
func (s *series) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, at := range s.points {
		c.DrawGlyph(s.glyph, vg.Point{X: x(at.X), Y: y(at.Y)})
	}
}
