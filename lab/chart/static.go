package chart

import (
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/lab/picture"
)

// Size of a static picture. Each row of its legend adds to the height.
const (
	width        = 20 * picture.Centimeter
	plotHeight   = 9 * picture.Centimeter
	legendHeight = 0.6 * picture.Centimeter // of a row
	edge         = 0.3 * picture.Centimeter
)

// WriteSVG writes the static picture as a file.
func (c Chart) WriteSVG(w io.Writer) error {
	if _, err := io.WriteString(w, "<?xml version=\"1.0\"?>\n"); err != nil {
		return err
	}
	return c.WriteElement(w)
}

// WriteElement writes the static picture as an element of a page.
func (c Chart) WriteElement(w io.Writer) error {
	f := newFigure(c)
	return f.picture().WriteSVG(w, c.Title, f.description())
}

// WritePNG writes the static picture as a file.
func (c Chart) WritePNG(w io.Writer) error { return newFigure(c).picture().WritePNG(w, 144) }

// static draws a figure without a browser.
type static struct {
	*figure
	plot   picture.Plot
	legend []legendEntry
	rows   int      // of it
	title  []string // in lines
	said   []string // the notes, in lines
}

// legendEntry is the place of the name of a curve.
type legendEntry struct {
	index, row int
	left       float64
}

// picture returns the figure as it is without a browser.
func (f *figure) picture() *picture.Picture {
	s := &static{figure: f, plot: f.axes()}
	s.layOut()
	s.title = inRows(titleSize, f.Title)
	for _, note := range f.notes {
		s.said = append(s.said, inRows(noteSize, note)...)
	}
	p := &picture.Picture{Width: width, Height: s.height()}
	s.draw(p)
	return p
}

var (
	white = color.NRGBA{0xff, 0xff, 0xff, 0xff}
	black = color.NRGBA{0, 0, 0, 0xff}
	ink   = color.NRGBA{0x1d, 0x23, 0x29, 0xff}
	faint = color.NRGBA{0xe1, 0xe5, 0xe9, 0xff}
	soft  = color.NRGBA{0x5c, 0x66, 0x70, 0xff}
)

const (
	swatchWidth = 0.9 * picture.Centimeter
	titleSize   = 12
	legendSize  = 10
	noteSize    = 9
)

// style returns how text of a size is set.
func style(size float64) picture.TextStyle {
	return picture.TextStyle{Color: ink, Size: size, Up: picture.Center}
}

// layOut gives each name of the legend its place in a row. One curve needs no name.
func (s *static) layOut() {
	if len(s.curves) < 2 {
		return
	}
	left := edge
	for i, c := range s.curves {
		if c.empty() {
			continue
		}
		needs := swatchWidth + 2*edge + style(legendSize).Width(c.Name) + edge
		if s.rows == 0 || left+needs > width {
			s.rows++
			left = edge
		}
		s.legend = append(s.legend, legendEntry{i, s.rows - 1, left})
		left += needs
	}
}

// inRows breaks a text into lines of the width of the picture.
func inRows(size float64, text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(inLines(style(size), text, width-2*edge), "\n")
}

func (s *static) height() float64 {
	return s.above() + plotHeight + float64(s.rows+len(s.said))*legendHeight + edge
}

// above is the height of the title.
func (s *static) above() float64 { return float64(len(s.title)) * legendHeight }

func (s *static) draw(to *picture.Picture) {
	to.FillRectangle(white, picture.Rectangle{Max: picture.Point{X: width, Y: to.Height}})
	for i, line := range s.title {
		title := style(titleSize)
		title.Across = picture.Center
		to.Text(title, picture.Point{X: width / 2, Y: to.Height - legendHeight*(float64(i)+0.7)}, line)
	}
	below := to.Height - s.above() - plotHeight
	s.plot.Draw(to, picture.Rectangle{Min: picture.Point{X: edge, Y: below}, Max: picture.Point{X: width - edge, Y: below + plotHeight - edge}})
	s.drawData(to)
	for _, e := range s.legend {
		y := below - legendHeight*(float64(e.row)+0.7)
		s.thumbnail(to, &s.curves[e.index], picture.Point{X: e.left, Y: y})
		to.Text(style(legendSize), picture.Point{X: e.left + swatchWidth + edge, Y: y}, s.curves[e.index].Name)
	}
	for i, line := range s.said {
		to.Text(style(noteSize), picture.Point{X: edge, Y: below - legendHeight*(float64(s.rows+i)+0.7)}, line)
	}
}

// axes returns a plot without data.
func (f *figure) axes() picture.Plot {
	const labelSize, tickSize = 10.5, 10
	inLabel := picture.TextStyle{Size: labelSize}
	p := picture.Plot{
		Color: picture.Colors{Axis: soft, Grid: faint, Text: black}, Gap: 5,
		X: picture.Axis{Min: f.x.low, Max: f.x.high, Log: f.LogX, Label: inLines(inLabel, f.X, width-2*axisRoom), LabelSize: labelSize, TickSize: tickSize},
		Y: picture.Axis{Min: f.y.low, Max: f.y.high, Log: f.LogY, Label: inLines(inLabel, f.Y, plotHeight-2*axisRoom), LabelSize: labelSize, TickSize: tickSize},
	}
	for _, t := range ticks(f.y.low, f.y.high, f.LogY, false, false) {
		p.Y.Ticks = append(p.Y.Ticks, picture.Tick{At: t.at, Label: t.label})
	}
	if len(f.Labels) > 0 {
		f.layLabels(&p.X)
		return p
	}
	whole, base2 := f.wholeX()
	for _, t := range ticks(f.x.low, f.x.high, f.LogX, base2, whole) {
		p.X.Ticks = append(p.X.Ticks, picture.Tick{At: t.at, Label: t.label})
	}
	return p
}

// wholeX reports whether all X are whole numbers, and whether all are powers of two.
func (f *figure) wholeX() (whole, powersOfTwo bool) {
	whole, powersOfTwo = true, true
	for _, c := range f.curves {
		for _, at := range c.Points {
			fraction, _ := math.Frexp(at.X)
			whole = whole && at.X == math.Trunc(at.X)
			powersOfTwo = powersOfTwo && fraction == 0.5
		}
	}
	return whole, powersOfTwo
}

// drawData draws the curves, and lines that are no data.
func (s *static) drawData(to *picture.Picture) {
	if s.Zero || s.y.low < 0 && s.y.high > 0 {
		s.drawLine(to, Reference{})
	}
	for _, l := range s.lines {
		s.drawLine(to, l)
	}
	for i := range s.curves {
		c := &s.curves[i]
		if c.Mark.joins() {
			s.join(to, c)
		}
		if c.Mark == Bars {
			s.bars(to, i)
		} else if c.Mark != Line {
			for _, at := range s.apart(c.shown()) {
				s.mark(to, c, s.plot.At(at.X, at.Y))
			}
		}
		for _, at := range c.shown() {
			if at.Spread > 0 {
				s.spread(to, c, at)
			}
		}
	}
	s.nameLines(to)
}

// join draws the lines of a curve. A point with gaps on both sides is a dot.
func (s *static) join(to *picture.Picture, c *curve) {
	for _, run := range c.runs() {
		if len(run) == 1 {
			if c.Mark == Line {
				to.Disc(rgb(c.color.Light), s.plot.At(run[0].X, run[0].Y), 2)
			}
			continue
		}
		var points []picture.Point
		for _, at := range s.thinned(run) {
			points = append(points, s.plot.At(at.X, at.Y))
		}
		to.Line(c.pen(), points...)
	}
}

func (c *curve) pen() picture.Pen {
	pen := picture.Pen{Color: rgb(c.color.Light), Width: c.width * 0.75}
	if c.Dashed {
		pen.Dashes = []float64{5, 3}
	}
	return pen
}

// thumbnail draws what stands for a curve in the legend, right of a point.
func (s *static) thumbnail(to *picture.Picture, c *curve, left picture.Point) {
	if c.Mark.joins() {
		to.Line(c.pen(), left, left.Add(swatchWidth, 0))
	}
	if c.Mark == Bars {
		to.FillRectangle(rgb(c.color.Light), picture.Rectangle{Min: left.Add(0, -legendHeight/3), Max: left.Add(swatchWidth, legendHeight/3)})
		return
	}
	s.mark(to, c, left.Add(swatchWidth/2, 0))
}

// rgb returns the colour of #rrggbb.
func rgb(hex string) color.NRGBA {
	v, err := strconv.ParseUint(hex[1:], 16, 24)
	if err != nil {
		panic("chart: " + hex + " is no colour")
	}
	return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
}
