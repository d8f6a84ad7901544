package picture

import (
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"git.sr.ht/~sbinet/gg"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
)

// WriteSVG writes the picture as an svg element of that title and description.
func (p *Picture) WriteSVG(w io.Writer, title, description string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "<svg role=\"img\" width=\"%[1]spt\" height=\"%[2]spt\" viewBox=\"0 0 %[1]s %[2]s\" xmlns=\"http://www.w3.org/2000/svg\">\n"+
		"<title>%[3]s</title>\n<desc>%[4]s</desc>\n", decimal(p.Width), decimal(p.Height), html.EscapeString(title), html.EscapeString(description))
	for i := range p.shapes {
		p.element(&b, &p.shapes[i])
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// families are the fonts that a browser may take.
const families = "'Liberation Sans',Arial,Helvetica,sans-serif"

// element writes a shape. Text says how wide it is, so that it is neither cut nor on other text where the reader's
// machine has a wider font instead.
func (p *Picture) element(b *strings.Builder, s *shape) {
	x, y := decimal(s.points[0].X), decimal(p.Height-s.points[0].Y)
	switch {
	case s.text != "":
		turn := ""
		if s.style.Rotation != 0 {
			turn = fmt.Sprintf(" transform=\"rotate(%s %s %s)\"", decimal(-s.style.Rotation*180/math.Pi), x, y)
		}
		fmt.Fprintf(b, "<text x=\"%s\" y=\"%s\"%s textLength=\"%s\" lengthAdjust=\"spacingAndGlyphs\" style=\"font-family:%s;font-size:%spx;fill:%s\">%s</text>\n",
			x, y, turn, decimal(s.style.Width(s.text)), families, decimal(s.style.Size), hex(s.style.Color), html.EscapeString(s.text))
	case s.radius > 0:
		fmt.Fprintf(b, "<circle cx=\"%s\" cy=\"%s\" r=\"%s\" style=\"%s\"/>\n", x, y, decimal(s.radius), s.paint())
	default:
		b.WriteString("<path d=\"")
		for i, at := range s.points {
			command := "L"
			if i == 0 {
				command = "M"
			}
			b.WriteString(command + decimal(at.X) + "," + decimal(p.Height-at.Y))
		}
		if s.closed {
			b.WriteString("Z")
		}
		b.WriteString("\" style=\"" + s.paint() + "\"/>\n")
	}
}

// paint returns the style of a line or an area.
func (s *shape) paint() string {
	if s.pen.Width == 0 {
		return "fill:" + hex(s.fill) + opacity("fill", s.fill)
	}
	style := "fill:none;stroke:" + hex(s.pen.Color) + opacity("stroke", s.pen.Color) + ";stroke-width:" + decimal(s.pen.Width)
	var dashes []string
	for _, d := range s.pen.Dashes {
		dashes = append(dashes, decimal(d))
	}
	if len(dashes) > 0 {
		style += ";stroke-dasharray:" + strings.Join(dashes, ",")
	}
	return style
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }

func opacity(of string, c color.NRGBA) string {
	if c.A == 0xff {
		return ""
	}
	return fmt.Sprintf(";%s-opacity:%.2g", of, float64(c.A)/0xff)
}

// decimal returns a length to a hundredth of a point.
func decimal(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(x, 'f', 2, 64), "0"), ".")
}

// WritePNG writes the picture as PNG, with so many dots per inch.
func (p *Picture) WritePNG(w io.Writer, dpi float64) error {
	scale := dpi / 72
	dc := gg.NewContext(int(math.Round(p.Width*scale)), int(math.Round(p.Height*scale)))
	dc.SetLineCapButt()
	for i := range p.shapes {
		p.paint(dc, &p.shapes[i], scale)
	}
	return dc.EncodePNG(w)
}

// paint draws a shape in pixels.
func (p *Picture) paint(dc *gg.Context, s *shape, scale float64) {
	pixel := func(at Point) (x, y float64) { return at.X * scale, (p.Height - at.Y) * scale }
	x, y := pixel(s.points[0])
	switch {
	case s.text != "":
		dc.SetColor(s.style.Color)
		dc.SetFontFace(face(s.style.Size * scale))
		if s.style.Rotation != 0 { // letters between pixels would be faint
			x, y = math.Round(x), math.Round(y)
		}
		dc.Push()
		dc.RotateAbout(-s.style.Rotation, x, y)
		dc.DrawString(s.text, x, y)
		dc.Pop()
		return
	case s.radius > 0:
		dc.DrawCircle(x, y, s.radius*scale)
	default:
		for _, at := range s.points {
			dc.LineTo(pixel(at))
		}
		if s.closed {
			dc.ClosePath()
		}
	}
	if s.pen.Width == 0 {
		dc.SetColor(s.fill)
		dc.Fill()
		return
	}
	var dashes []float64
	for _, d := range s.pen.Dashes {
		dashes = append(dashes, d*scale)
	}
	dc.SetDash(dashes...)
	dc.SetLineWidth(s.pen.Width * scale)
	dc.SetColor(s.pen.Color)
	dc.Stroke()
}

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
