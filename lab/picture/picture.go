// Package picture draws lines, areas and text, and writes them as SVG and as PNG. Lengths are in points, Y points up,
// and all text is in one font, whose letters are as wide as Arial's.
package picture

import (
	"image/color"
	"math"
	"slices"
)

// Centimeter is in points.
const Centimeter = 72 / 2.54

// Point is a place in a picture.
type Point struct{ X, Y float64 }

// Add returns the point that is so far from p.
func (p Point) Add(x, y float64) Point { return Point{p.X + x, p.Y + y} }

// Rectangle is a part of a picture.
type Rectangle struct{ Min, Max Point }

// Center returns the point in the middle.
func (r Rectangle) Center() Point { return Point{(r.Min.X + r.Max.X) / 2, (r.Min.Y + r.Max.Y) / 2} }

// Inset returns the rectangle that is smaller by so much on each side.
func (r Rectangle) Inset(by float64) Rectangle {
	return Rectangle{r.Min.Add(by, by), r.Max.Add(-by, -by)}
}

// Contains reports whether the whole of other lies within r.
func (r Rectangle) Contains(other Rectangle) bool {
	return other.Min.X >= r.Min.X && other.Max.X <= r.Max.X && other.Min.Y >= r.Min.Y && other.Max.Y <= r.Max.Y
}

// Overlaps reports whether the inner parts of r and other have points in common.
func (r Rectangle) Overlaps(other Rectangle) bool {
	return r.Min.X < other.Max.X && other.Min.X < r.Max.X && r.Min.Y < other.Max.Y && other.Min.Y < r.Max.Y
}

func (r Rectangle) corners() []Point {
	return []Point{r.Min, {r.Min.X, r.Max.Y}, r.Max, {r.Max.X, r.Min.Y}}
}

// Picture is what was drawn, in its order. The zero value with a size is empty.
type Picture struct {
	Width, Height float64
	shapes        []shape
}

// Pen is how a line is drawn. Dashes are lengths of strokes and gaps in turn; without any the line is whole.
type Pen struct {
	Color  color.NRGBA
	Width  float64
	Dashes []float64
}

// shape is a line, an area, a circle or a line of text.
type shape struct {
	points []Point // the center of a circle; where the baseline of text begins
	radius float64
	closed bool
	pen    Pen // of zero width for what is filled
	fill   color.NRGBA
	text   string
	style  TextStyle
}

// Line draws a line through points.
func (p *Picture) Line(pen Pen, points ...Point) {
	p.shapes = append(p.shapes, shape{points: slices.Clone(points), pen: pen})
}

// Outline draws the edge of a polygon.
func (p *Picture) Outline(pen Pen, corners ...Point) {
	p.shapes = append(p.shapes, shape{points: slices.Clone(corners), closed: true, pen: pen})
}

// Fill fills a polygon.
func (p *Picture) Fill(c color.NRGBA, corners ...Point) {
	p.shapes = append(p.shapes, shape{points: slices.Clone(corners), closed: true, fill: c})
}

// FillRectangle fills a rectangle.
func (p *Picture) FillRectangle(c color.NRGBA, r Rectangle) { p.Fill(c, r.corners()...) }

// Disc fills a circle.
func (p *Picture) Disc(c color.NRGBA, center Point, radius float64) {
	p.shapes = append(p.shapes, shape{points: []Point{center}, radius: radius, fill: c})
}

// Ring draws a circle.
func (p *Picture) Ring(pen Pen, center Point, radius float64) {
	p.shapes = append(p.shapes, shape{points: []Point{center}, radius: radius, pen: pen})
}

// Plot is a pair of axes with a grid.
type Plot struct {
	X, Y  Axis
	Color Colors

	// Gap is the room between the axes and the data.
	Gap float64

	// Data is where the data are, as Draw has laid it out.
	Data Rectangle
}

// Colors are those of a plot.
type Colors struct{ Axis, Grid, Text color.NRGBA }

// Axis is what is drawn from Min to Max.
type Axis struct {
	Label     string
	LabelSize float64
	Min, Max  float64
	Log       bool
	Ticks     []Tick
	TickSize  float64 // of their text
	Slant     float64 // of their text below the X axis: then each label ends at its tick
}

// Tick is a place on an axis, a minor one if it has no label. Those out of the axis are not drawn.
type Tick struct {
	At    float64
	Label string
}

// Share returns the place of a value, 0 at Min and 1 at Max.
func (a *Axis) Share(value float64) float64 {
	if a.Log {
		return math.Log(value/a.Min) / math.Log(a.Max/a.Min)
	}
	return (value - a.Min) / (a.Max - a.Min)
}

func (a *Axis) shows(t Tick) bool {
	share := a.Share(t.At)
	return share >= -1e-9 && share <= 1+1e-9
}

// At returns the place of a point of the data. Draw comes before it.
func (p *Plot) At(x, y float64) Point {
	return Point{
		p.Data.Min.X + p.X.Share(x)*(p.Data.Max.X-p.Data.Min.X),
		p.Data.Min.Y + p.Y.Share(y)*(p.Data.Max.Y-p.Data.Min.Y),
	}
}

const (
	tickLength = 8
	labelGap   = 5
	tickGap    = 3 // between a tick of the Y axis and its text
)

// Draw draws the axes and the grid within an area.
func (p *Plot) Draw(to *Picture, area Rectangle) {
	labelX, labelY, textX, textY := p.styles()
	heightX, widthY := p.X.room(textX).Y, p.Y.room(textY).X
	axisY := area.Min.X + tickLength + tickGap + widthY + gapAfter(labelY.Height(p.Y.Label))
	axisX := area.Min.Y + tickLength + heightX + gapAfter(labelX.Height(p.X.Label))
	p.Data = Rectangle{Point{axisY + p.Gap, axisX + p.Gap}, area.Max}
	p.fit(area, textX, textY)
	axisY = p.Data.Min.X - p.Gap

	axis, grid := Pen{Color: p.Color.Axis, Width: 0.5}, Pen{Color: p.Color.Grid, Width: 0.75}
	for _, t := range p.X.Ticks {
		if !p.X.shows(t) {
			continue
		}
		x := p.At(t.At, p.Y.Min).X
		to.Line(axis, Point{x, axisX - t.length()}, Point{x, axisX})
		if t.Label != "" {
			to.Line(grid, Point{x, p.Data.Min.Y}, Point{x, p.Data.Max.Y})
			to.Text(textX, Point{x, axisX - tickLength}, t.Label)
		}
	}
	for _, t := range p.Y.Ticks {
		if !p.Y.shows(t) {
			continue
		}
		y := p.At(p.X.Min, t.At).Y
		to.Line(axis, Point{axisY - t.length(), y}, Point{axisY, y})
		if t.Label != "" {
			to.Line(grid, Point{p.Data.Min.X, y}, Point{p.Data.Max.X, y})
			to.Text(textY, Point{axisY - tickLength - tickGap, y}, t.Label)
		}
	}
	to.Line(axis, Point{p.Data.Min.X, axisX}, Point{p.Data.Max.X, axisX})
	to.Line(axis, Point{axisY, p.Data.Min.Y}, Point{axisY, p.Data.Max.Y})
	middle := p.Data.Center()
	to.Text(labelX, Point{middle.X, area.Min.Y}, p.X.Label)
	to.Text(labelY, Point{area.Min.X, middle.Y}, p.Y.Label)
}

// styles returns how labels and the text of ticks are set.
func (p *Plot) styles() (labelX, labelY, textX, textY TextStyle) {
	labelX = TextStyle{Color: p.Color.Text, Size: p.X.LabelSize, Across: Center}
	labelY = TextStyle{Color: p.Color.Text, Size: p.Y.LabelSize, Across: Center, Up: Top, Rotation: math.Pi / 2}
	textX = TextStyle{Color: p.Color.Text, Size: p.X.TickSize, Across: Center, Up: Top}
	if p.X.Slant != 0 {
		textX.Rotation, textX.Across = p.X.Slant, Right
	}
	textY = TextStyle{Color: p.Color.Text, Size: p.Y.TickSize, Across: Right, Up: Center}
	return labelX, labelY, textX, textY
}

// room returns how wide and how high the text of the ticks is at most.
func (a *Axis) room(s TextStyle) (most Point) {
	for _, t := range a.Ticks {
		if a.shows(t) {
			box := s.Box(t.Label)
			most = Point{max(most.X, box.Max.X-box.Min.X), max(most.Y, -box.Min.Y)}
		}
	}
	return most
}

func gapAfter(height float64) float64 {
	if height == 0 {
		return 0
	}
	return height + labelGap
}

// fit makes the data so much smaller that the text of no tick leaves the area.
func (p *Plot) fit(area Rectangle, textX, textY TextStyle) {
	for _, t := range p.X.Ticks {
		if share := p.X.Share(t.At); p.X.shows(t) && share > 0 {
			p.Data.Max.X = min(p.Data.Max.X, p.Data.Min.X+(area.Max.X-textX.Box(t.Label).Max.X-p.Data.Min.X)/share)
		}
	}
	for _, t := range p.X.Ticks {
		if share := p.X.Share(t.At); p.X.shows(t) && share < 1 {
			p.Data.Min.X = max(p.Data.Min.X, p.Data.Max.X-(p.Data.Max.X-area.Min.X+textX.Box(t.Label).Min.X)/(1-share))
		}
	}
	for _, t := range p.Y.Ticks {
		if share := p.Y.Share(t.At); p.Y.shows(t) && share > 0 {
			p.Data.Max.Y = min(p.Data.Max.Y, p.Data.Min.Y+(area.Max.Y-textY.Box(t.Label).Max.Y-p.Data.Min.Y)/share)
		}
	}
}

func (t Tick) length() float64 {
	if t.Label == "" {
		return tickLength / 2
	}
	return tickLength
}
