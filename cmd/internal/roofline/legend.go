package roofline

import "github.com/octavo-fp8/octavo/lab/picture"

// legend is a line of names with their glyphs.
type legend []*series

// add adds series that are not there yet.
func (l *legend) add(all []*series) {
	known := make(map[string]bool)
	for _, s := range *l {
		known[s.name] = true
	}
	for _, s := range all {
		if !known[s.name] {
			*l = append(*l, s)
		}
	}
}

// draw draws the line in the middle, below y.
func (l legend) draw(to *picture.Picture, y float64) {
	style := textStyle(10, picture.Left, picture.Top)
	const gap, between = 7, 26
	width := -float64(between)
	for _, s := range l {
		width += gap + style.Width(s.name) + between
	}
	x := (to.Width - width) / 2
	for _, s := range l {
		s.glyph(to, s.color, picture.Point{X: x, Y: y - style.Height(s.name)/2})
		to.Text(style, picture.Point{X: x + gap, Y: y}, s.name)
		x += gap + style.Width(s.name) + between
	}
}
