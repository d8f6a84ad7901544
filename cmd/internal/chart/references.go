package chart

import (
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// referenceLines draws lines across the plot. It implements plot.Plotter.
type referenceLines []Reference

// Plot implements plot.Plotter.
func (all referenceLines) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	for _, r := range all {
		style := draw.LineStyle{Color: soft, Width: vg.Points(0.9), Dashes: []vg.Length{vg.Points(6), vg.Points(3)}}
		if r.Name == "" {
			style.Dashes = nil
		}
		if r.Vertical {
			c.StrokeLine2(style, toX(r.Value), c.Min.Y, toX(r.Value), c.Max.Y)
		} else {
			c.StrokeLine2(style, c.Min.X, toY(r.Value), c.Max.X, toY(r.Value))
		}
	}
}

// referenceNames draws the names of lines beside them, over the curves, where there is room. It implements plot.Plotter.
type referenceNames []Reference

// Plot implements plot.Plotter.
func (all referenceNames) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	text := draw.TextStyle{Color: soft, Font: font.From(sans, 9), Handler: plot.DefaultTextHandler}
	var taken []vg.Rectangle
	for _, r := range all {
		box := vg.Rectangle{Max: vg.Point{X: text.Width(r.Name) + 6, Y: 12}}
		var places []vg.Point
		if r.Vertical {
			for row := 1; row <= 4; row++ {
				x, y := toX(r.Value), c.Max.Y-vg.Length(row)*box.Max.Y
				places = append(places, vg.Point{X: x, Y: y}, vg.Point{X: x - box.Max.X, Y: y})
			}
		} else {
			for _, x := range []vg.Length{c.Max.X - box.Max.X, c.Min.X} {
				places = append(places, vg.Point{X: x, Y: toY(r.Value)}, vg.Point{X: x, Y: toY(r.Value) - box.Max.Y})
			}
		}
		for _, at := range places {
			place := box.Add(at)
			if inside(place, c.Rectangle) && !slices.ContainsFunc(taken, func(t vg.Rectangle) bool { return overlap(t, place) }) {
				taken = append(taken, place)
				c.SetColor(color.NRGBA{0xff, 0xff, 0xff, 0xcc})
				c.Fill(vg.Rectangle{Min: place.Min.Add(vg.Point{X: 1, Y: 1}), Max: place.Max.Sub(vg.Point{X: 1, Y: 1})}.Path())
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
