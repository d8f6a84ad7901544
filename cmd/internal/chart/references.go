package chart

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// references draws lines across the plot, and their names where there is room. It implements plot.Plotter.
type references []Reference

// Plot implements plot.Plotter.
func (all references) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	text := draw.TextStyle{Color: soft, Font: font.From(sans, 9), Handler: plot.DefaultTextHandler}
	var taken []vg.Rectangle
	for _, r := range all {
		style := draw.LineStyle{Color: soft, Width: vg.Points(0.9), Dashes: []vg.Length{vg.Points(6), vg.Points(3)}}
		if r.Name == "" {
			style.Dashes = nil
		}
		box := vg.Rectangle{Max: vg.Point{X: text.Width(r.Name) + 6, Y: 12}}
		var places []vg.Point
		if r.Vertical {
			x := toX(r.Value)
			c.StrokeLine2(style, x, c.Min.Y, x, c.Max.Y)
			for row := 1; row <= 4; row++ {
				y := c.Max.Y - vg.Length(row)*box.Max.Y
				places = append(places, vg.Point{X: x, Y: y}, vg.Point{X: x - box.Max.X, Y: y})
			}
		} else {
			y := toY(r.Value)
			c.StrokeLine2(style, c.Min.X, y, c.Max.X, y)
			for _, x := range []vg.Length{c.Max.X - box.Max.X, c.Min.X} {
				places = append(places, vg.Point{X: x, Y: y}, vg.Point{X: x, Y: y - box.Max.Y})
			}
		}
		for _, at := range places {
			if place := box.Add(at); inside(place, c.Rectangle) && !slices.ContainsFunc(taken, func(t vg.Rectangle) bool { return overlap(t, place) }) {
				taken = append(taken, place)
				c.FillText(text, at.Add(vg.Point{X: 3, Y: 2.5}), r.Name)
				break
			}
		}
	}
}

func inside(a, b vg.Rectangle) bool {
	return a.Min.X >= b.Min.X && a.Max.X <= b.Max.X && a.Min.Y >= b.Min.Y && a.Max.Y <= b.Max.Y
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}
