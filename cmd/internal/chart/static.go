package chart

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Size of a static picture. Each row of its legend adds to the height.
const (
	width        = 20 * vg.Centimeter
	plotHeight   = 9 * vg.Centimeter
	legendHeight = 0.6 * vg.Centimeter // of a row
	edge         = 0.3 * vg.Centimeter
)

// sans is the font of all text. Its letters are as wide as Arial's.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// families are the fonts that a browser may take.
const families = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif"

// SVG returns the static picture as an element of a page.
func (c Chart) SVG() (template.HTML, error) {
	var b bytes.Buffer
	err := c.writeElement(&b)
	return template.HTML(b.String()), err
}

// WriteSVG writes the static picture as a file.
func (c Chart) WriteSVG(w io.Writer) error {
	if _, err := io.WriteString(w, "<?xml version=\"1.0\"?>\n"); err != nil {
		return err
	}
	return c.writeElement(w)
}

func (c Chart) writeElement(w io.Writer) error {
	f := newFigure(c)
	s, err := newStatic(f)
	if err != nil {
		return err
	}
	canvas := &svgCanvas{Canvas: vgsvg.New(width, s.height())}
	s.draw(draw.New(canvas))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	_, element, _ := strings.Cut(svg.String(), "<svg")
	attributes, rest, _ := strings.Cut(element, ">")
	rest = canvas.fitText(strings.ReplaceAll(rest, "font-family:Liberation Sans", families))
	_, err = fmt.Fprintf(w, "<svg role=\"img\"%s>\n<title>%s</title>\n<desc>%s</desc>%s", attributes,
		html.EscapeString(c.Title), html.EscapeString(f.description()), rest)
	return err
}

// WritePNG writes the static picture as a file.
func (c Chart) WritePNG(w io.Writer) error {
	s, err := newStatic(newFigure(c))
	if err != nil {
		return err
	}
	canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, s.height()), vgimg.UseDPI(144))}
	s.draw(draw.New(canvas))
	_, err = canvas.WriteTo(w)
	return err
}

// static draws a figure without a browser.
type static struct {
	*figure
	plot   *plot.Plot
	legend []legendEntry
	rows   int      // of it
	title  []string // in lines
	said   []string // the notes, in lines
}

// legendEntry is a name and what stands for it.
type legendEntry struct {
	name  string
	looks []plot.Thumbnailer
	row   int
	left  vg.Length
}

func newStatic(f *figure) (*static, error) {
	s := &static{figure: f, plot: f.axes()}
	s.plot.Add(referenceLines(f.lines))
	for i, c := range f.curves {
		if c.empty() {
			continue
		}
		looks, err := f.add(s.plot, i)
		if err != nil {
			return nil, err
		}
		s.legend = append(s.legend, legendEntry{name: c.Name, looks: looks})
	}
	s.plot.Add(referenceNames(f.lines))
	// What was added has widened the axes.
	s.plot.X.Min, s.plot.X.Max, s.plot.Y.Min, s.plot.Y.Max = f.x.low, f.x.high, f.y.low, f.y.high
	if len(s.curves) < 2 {
		s.legend = nil
	}
	s.layOut()
	s.title = s.inRows(titleSize, f.Title)
	for _, note := range f.notes {
		s.said = append(s.said, s.inRows(noteSize, note)...)
	}
	return s, nil
}

// style returns how text of a size is set.
func (s *static) style(size vg.Length) draw.TextStyle {
	return draw.TextStyle{Color: ink, Font: font.From(sans, size), Handler: plot.DefaultTextHandler, YAlign: draw.YCenter}
}

var (
	ink   = color.RGBA{0x1d, 0x23, 0x29, 0xff}
	faint = color.RGBA{0xe1, 0xe5, 0xe9, 0xff}
	soft  = color.RGBA{0x5c, 0x66, 0x70, 0xff}
)

const (
	swatchWidth = 0.9 * vg.Centimeter
	titleSize   = 12
	noteSize    = 9
)

// layOut gives each name of the legend its place in a row.
func (s *static) layOut() {
	left := edge
	for i := range s.legend {
		e := &s.legend[i]
		needs := swatchWidth + 2*edge + s.style(10).Width(e.name) + edge
		if i == 0 || left+needs > width {
			s.rows++
			left = edge
		}
		e.row, e.left = s.rows-1, left
		left += needs
	}
}

// inRows breaks a text into lines of the width of the picture.
func (s *static) inRows(size vg.Length, text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(inLines(s.style(size), text, width-2*edge), "\n")
}

func (s *static) height() vg.Length {
	return s.above() + plotHeight + vg.Length(s.rows+len(s.said))*legendHeight + edge
}

// above is the height of the title.
func (s *static) above() vg.Length { return vg.Length(len(s.title)) * legendHeight }

func (s *static) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	for i, line := range s.title {
		style := s.style(titleSize)
		style.XAlign = draw.XCenter
		c.FillText(style, vg.Point{X: width / 2, Y: s.height() - legendHeight*(vg.Length(i)+0.7)}, line)
	}
	below := s.height() - s.above() - plotHeight
	s.plot.Draw(draw.Crop(c, edge, -edge, below, -edge-s.above()))
	for _, e := range s.legend {
		y := below - legendHeight*(vg.Length(e.row)+0.7)
		for _, look := range e.looks {
			box := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{Min: vg.Point{X: e.left, Y: y - legendHeight/3}, Max: vg.Point{X: e.left + swatchWidth, Y: y + legendHeight/3}}}
			look.Thumbnail(&box)
		}
		c.FillText(s.style(10), vg.Point{X: e.left + swatchWidth + edge, Y: y}, e.name)
	}
	for i, line := range s.said {
		c.FillText(s.style(noteSize), vg.Point{X: edge, Y: below - legendHeight*(vg.Length(s.rows+i)+0.7)}, line)
	}
}

// axes returns a plot without data.
func (f *figure) axes() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = font.From(sans, 10.5)
		axis.Tick.Label.Font = font.From(sans, 10)
		axis.Tick.Color, axis.Color = soft, soft
		axis.Label.Padding = vg.Points(3)
	}
	p.X.Label.Text = inLines(p.X.Label.TextStyle, f.X, width-2*axisRoom)
	p.Y.Label.Text = inLines(p.Y.Label.TextStyle, f.Y, plotHeight-2*axisRoom)
	p.X.Tick.Marker = axisTicks{f, true}
	p.Y.Tick.Marker = axisTicks{f, false}
	if f.LogX {
		p.X.Scale = plot.LogScale{}
	}
	if f.LogY {
		p.Y.Scale = plot.LogScale{}
	}
	if len(f.Labels) > 0 {
		f.layLabels(&p.X)
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = faint, faint
	grid.Horizontal.Width, grid.Vertical.Width = vg.Points(0.75), vg.Points(0.75)
	p.Add(grid)
	if f.Zero || f.y.low < 0 && f.y.high > 0 {
		p.Add(referenceLines{{}})
	}
	return p
}

// axisTicks are the ticks of one axis of a figure.
type axisTicks struct {
	*figure
	x bool
}

// Ticks implements plot.Ticker.
func (a axisTicks) Ticks(low, high float64) (all []plot.Tick) {
	if a.x && len(a.Labels) > 0 {
		for i, label := range a.labels {
			all = append(all, plot.Tick{Value: float64(i), Label: label})
		}
		return all
	}
	ticksOf := a.ticksY
	if a.x {
		ticksOf = a.ticksX
	}
	for _, t := range ticksOf(low, high) {
		all = append(all, plot.Tick{Value: t.at, Label: t.label})
	}
	return all
}

func (f *figure) ticksX(low, high float64) []tick {
	whole, base2 := f.wholeX()
	return ticks(low, high, f.LogX, base2, whole)
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

func (f *figure) ticksY(low, high float64) []tick { return ticks(low, high, f.LogY, false, false) }

// add draws the curve of that index, and returns what stands for it in a legend.
func (f *figure) add(p *plot.Plot, index int) (looks []plot.Thumbnailer, err error) {
	c := f.curves[index]
	shade := rgba(c.color.Light)
	if c.Mark.joins() {
		for _, run := range c.runs() {
			if len(run) == 1 && c.Mark == Line {
				p.Add(&lone{run[0], shade})
				continue
			}
			line, err := plotter.NewLine(f.thinned(run))
			if err != nil {
				return nil, err
			}
			line.Color, line.Width = shade, vg.Length(c.width)*vg.Points(0.75)
			if c.Dashed {
				line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
			}
			p.Add(line)
			looks = []plot.Thumbnailer{line}
		}
	}
	if glyph := c.Mark.glyph(); glyph != nil {
		dots, err := plotter.NewScatter(f.apart(c.shown()))
		if err != nil {
			return nil, err
		}
		dots.Color, dots.Shape, dots.Radius = shade, glyph, vg.Points(3)
		p.Add(dots)
		looks = append(looks, dots)
	}
	if c.Mark == Bars {
		b := f.newBars(index)
		p.Add(b)
		looks = append(looks, b)
	}
	if c.spreads() {
		errors, err := plotter.NewYErrorBars(errorBars{c.shown(), f.y.low, f.LogY})
		if err != nil {
			return nil, err
		}
		errors.Color = shade
		p.Add(errors)
	}
	return looks, nil
}

// rgba returns the colour of #rrggbb.
func rgba(hex string) color.RGBA {
	v, err := strconv.ParseUint(hex[1:], 16, 24)
	if err != nil {
		panic("chart: " + hex + " is no colour")
	}
	return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
}
