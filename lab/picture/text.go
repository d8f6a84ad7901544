package picture

import (
	"image/color"
	"math"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
)

// TextStyle is how text is set. Its lines are parted by newlines.
type TextStyle struct {
	Color    color.NRGBA
	Size     float64
	Rotation float64 // counterclockwise about the place, in radians
	Across   Align
	Up       Align
}

// Align is which part of text stands at its place.
type Align float64

// The parts of text, across and up.
const (
	Left   Align = 0
	Center Align = 0.5
	Right  Align = 1
	Bottom Align = 0
	Top    Align = 1
)

// Of the size of the font.
const (
	lineHeight = 1.15
	descent    = 0.21 // of letters below the baseline
)

// Width returns the width of the longest line.
func (s TextStyle) Width(text string) (width float64) {
	for line := range strings.SplitSeq(text, "\n") {
		width = max(width, advance(line)*s.Size)
	}
	return width
}

// Height returns the height of all lines, 0 for no text.
func (s TextStyle) Height(text string) float64 {
	if text == "" {
		return 0
	}
	return lineHeight * s.Size * float64(1+strings.Count(text, "\n"))
}

// Box returns the upright rectangle that the text takes, relative to its place.
func (s TextStyle) Box(text string) Rectangle {
	w, h := s.Width(text), s.Height(text)
	left, bottom := -float64(s.Across)*w, -float64(s.Up)*h
	box := Rectangle{Point{math.Inf(1), math.Inf(1)}, Point{math.Inf(-1), math.Inf(-1)}}
	for _, corner := range (Rectangle{Point{left, bottom}, Point{left + w, bottom + h}}).corners() {
		at := corner.rotated(s.Rotation)
		box.Min = Point{min(box.Min.X, at.X), min(box.Min.Y, at.Y)}
		box.Max = Point{max(box.Max.X, at.X), max(box.Max.Y, at.Y)}
	}
	return box
}

func (p Point) rotated(angle float64) Point {
	sin, cos := math.Sincos(angle)
	return Point{p.X*cos - p.Y*sin, p.X*sin + p.Y*cos}
}

// Text draws text at a place.
func (p *Picture) Text(s TextStyle, at Point, text string) {
	bottom := -float64(s.Up) * s.Height(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line == "" {
			continue
		}
		baseline := bottom + s.Size*(float64(len(lines)-1-i)*lineHeight+descent)
		from := Point{-float64(s.Across) * s.Width(line), baseline}.rotated(s.Rotation)
		p.shapes = append(p.shapes, shape{points: []Point{at.Add(from.X, from.Y)}, text: line, style: s})
	}
}

var sans = sync.OnceValue(func() *opentype.Font {
	f, err := opentype.Parse(liberationsansregular.TTF)
	if err != nil {
		panic("picture: " + err.Error())
	}
	return f
})

// face returns the font in a size in pixels. Faces cannot be shared by goroutines, the font can.
func face(pixels float64) font.Face {
	f, err := opentype.NewFace(sans(), &opentype.FaceOptions{Size: pixels, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		panic("picture: " + err.Error())
	}
	return f
}

// advance returns the width of a line of text in a font of size 1.
func advance(line string) float64 {
	const exact = 2048 // units of the font
	return float64(font.MeasureString(face(exact), line)) / 64 / exact
}
