package picture

import (
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"

	"git.sr.ht/~sbinet/gg"
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
