// Package picture draws lines, areas and text, and writes them as SVG and as PNG. Lengths are in points, Y points up,
// and all text is in one font, whose letters are as wide as Arial's.
package picture

import (
	"image/color"
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
