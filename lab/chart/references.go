package chart

import (
	"image/color"
	"slices"

	"github.com/octavo-fp8/octavo/lab/picture"
)

// drawLine draws a line across the plot.
func (s *static) drawLine(to *picture.Picture, r Reference) {
	pen := picture.Pen{Color: soft, Width: 0.9, Dashes: []float64{6, 3}}
	if r.Name == "" {
		pen.Dashes = nil
	}
	data := s.plot.Data
	if at := s.plot.At(r.Value, s.y.low).X; r.Vertical {
		to.Line(pen, picture.Point{X: at, Y: data.Min.Y}, picture.Point{X: at, Y: data.Max.Y})
		return
	}
	at := s.plot.At(s.x.low, r.Value).Y
	to.Line(pen, picture.Point{X: data.Min.X, Y: at}, picture.Point{X: data.Max.X, Y: at})
}

// nameLines draws the names of lines beside them, over the curves, where there is room.
func (s *static) nameLines(to *picture.Picture) {
	text := picture.TextStyle{Color: soft, Size: 9}
	data := s.plot.Data
	var taken []picture.Rectangle
	for _, r := range s.lines {
		if r.Name == "" {
			continue
		}
		width, height := text.Width(r.Name)+6, 12.0
		var places []picture.Point
		if r.Vertical {
			x := s.plot.At(r.Value, s.y.low).X
			for row := 1.0; row <= 4; row++ {
				y := data.Max.Y - row*height
				places = append(places, picture.Point{X: x, Y: y}, picture.Point{X: x - width, Y: y})
			}
		} else {
			y := s.plot.At(s.x.low, r.Value).Y
			for _, x := range []float64{data.Max.X - width, data.Min.X} {
				places = append(places, picture.Point{X: x, Y: y}, picture.Point{X: x, Y: y - height})
			}
		}
		for _, at := range places {
			place := picture.Rectangle{Min: at, Max: at.Add(width, height)}
			if data.Contains(place) && !slices.ContainsFunc(taken, place.Overlaps) {
				taken = append(taken, place)
				to.FillRectangle(color.NRGBA{0xff, 0xff, 0xff, 0xcc}, place.Inset(1))
				to.Text(text, at.Add(3, 1), r.Name)
				break
			}
		}
	}
}
