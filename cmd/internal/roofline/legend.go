package roofline

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legend is a line of names with their glyphs.
type legend struct {
	names  []string
	glyphs []draw.GlyphStyle
}

// add adds series that are not there yet.
func (l *legend) add(all []*series) {
	known := make(map[string]bool)
	for _, name := range l.names {
		known[name] = true
	}
	for _, s := range all {
		if !known[s.name] {
			l.names, l.glyphs = append(l.names, s.name), append(l.glyphs, s.glyph)
		}
	}
}

// draw draws the line in the middle, below y.
func (l *legend) draw(c draw.Canvas, y vg.Length) {
	style := textStyle(10, draw.XLeft, draw.YTop)
	gap, between := vg.Points(7), vg.Points(26)
	width := -between
	for _, name := range l.names {
		width += gap + style.Width(name) + between
	}
	x := c.Center().X - width/2
	for i, name := range l.names {
		c.DrawGlyph(l.glyphs[i], vg.Point{X: x, Y: y - style.Height(name)/2})
		c.FillText(style, vg.Point{X: x + gap, Y: y}, name)
		x += gap + style.Width(name) + between
	}
}
