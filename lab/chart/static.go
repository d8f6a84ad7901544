//go:build !js

package chart

import (
	"image/color"
	"io"
	"slices"
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
	if slices.ContainsFunc(s.curves, func(c curve) bool { return c.Mark == Bars }) { // which cover them
		for _, l := range s.lines {
			s.drawLine(to, l)
		}
	}
	s.nameLines(to)
}

// join draws the lines of a curve. A point with gaps on both sides is a dot.
func (s *static) join(to *picture.Picture, c *curve) {
	for _, run := range c.runs() {
		if len(run) == 1 {
			if c.Mark == Line {
				to.Disc(RGB(c.color.Light), s.plot.At(run[0].X, run[0].Y), 2)
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
	pen := picture.Pen{Color: RGB(c.color.Light), Width: c.width * 0.75}
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
		to.FillRectangle(RGB(c.color.Light), picture.Rectangle{Min: left.Add(0, -legendHeight/3), Max: left.Add(swatchWidth, legendHeight/3)})
		return
	}
	s.mark(to, c, left.Add(swatchWidth/2, 0))
}

// mark draws one of the marks. Those out of the plot are not drawn.
func (s *static) mark(to *picture.Picture, c *curve, at picture.Point) {
	const radius, stroke = 3, 1.2
	shade := RGB(c.color.Light)
	pen := picture.Pen{Color: shade, Width: stroke}
	switch c.Mark {
	case Crosses:
		const r = 0.9 * radius
		to.Line(pen, at.Add(-r, -r), at.Add(r, r))
		to.Line(pen, at.Add(-r, r), at.Add(r, -r))
	case Dashes:
		to.Line(pen, at.Add(-2*radius, 0), at.Add(2*radius, 0))
	case Rings:
		to.Ring(pen, at, radius)
	case Dots, Joined:
		to.Disc(shade, at, radius)
	}
}

// mostBuckets is how many parts of the X axis a static picture tells apart.
const mostBuckets = 1200

// thinned returns what is seen of a long line: in each narrow part of the axis its first, lowest, highest and last point.
func (f *figure) thinned(p []Point) []Point {
	if len(p) <= 4*mostBuckets {
		return p
	}
	bucket := func(i int) int { return int(f.across(p[i].X) * mostBuckets) }
	var kept []Point
	for first := 0; first < len(p); {
		lowest, highest, last := first, first, first
		for i := first; i < len(p) && bucket(i) == bucket(first); i++ {
			if p[i].Y < p[lowest].Y {
				lowest = i
			}
			if p[i].Y > p[highest].Y {
				highest = i
			}
			last = i
		}
		places := []int{first, lowest, highest, last}
		slices.Sort(places)
		for _, i := range slices.Compact(places) {
			kept = append(kept, p[i])
		}
		first = last + 1
	}
	return kept
}

// apart returns what is seen of many marks: of those at the same place of the picture one.
func (f *figure) apart(p []Point) []Point {
	if len(p) <= 4*mostBuckets {
		return p
	}
	type place struct{ across, up int }
	seen := make(map[place]bool)
	var kept []Point
	for _, at := range p {
		here := place{int(f.across(at.X) * mostBuckets), int(f.height(at.Y) * mostBuckets)}
		if !seen[here] {
			kept = append(kept, at)
		}
		seen[here] = true
	}
	return kept
}

// runs returns the points between the gaps of a line.
func (c curve) runs() (all [][]Point) {
	var run []Point
	for _, at := range c.Points {
		if finite(at.Y) {
			run = append(run, at)
			continue
		}
		if len(run) > 0 {
			all = append(all, run)
		}
		run = nil
	}
	if len(run) > 0 {
		all = append(all, run)
	}
	return all
}

// spread draws a bar from low to high, with a stroke at both ends. On a logarithmic axis one that would leave it ends
// at its bottom.
func (s *static) spread(to *picture.Picture, c *curve, at Point) {
	const half = 2.5 // of a stroke
	low := at.Y - at.Spread
	if s.LogY {
		low = max(low, s.y.low)
	}
	pen := picture.Pen{Color: RGB(c.color.Light), Width: 1}
	from, till := s.plot.At(at.X, low), s.plot.At(at.X, at.Y+at.Spread)
	to.Line(pen, from, till)
	to.Line(pen, from.Add(-half, 0), from.Add(half, 0))
	to.Line(pen, till.Add(-half, 0), till.Add(half, 0))
}

// bars draws those of the curve of that index, beside those of others.
func (s *static) bars(to *picture.Picture, index int) {
	which, many := 0, 0
	for i, c := range s.curves {
		if c.Mark != Bars {
			continue
		}
		if i < index {
			which++
		}
		many++
	}
	c := s.curves[index]
	if s.Stacked {
		which, many = 0, 1
	}
	bottom := max(s.y.low, min(0, s.y.high))
	width := 0.9 * s.barWidth() / float64(many)
	from := (float64(which) - float64(many)/2) * width
	for i, at := range c.shown() {
		low, high := bottom, at.Y
		if c.bases != nil {
			low = c.bases[i]
			high += low
		}
		to.Fill(RGB(c.color.Light), s.plot.At(s.beside(at.X, from), low), s.plot.At(s.beside(at.X, from), high),
			s.plot.At(s.beside(at.X, from+width), high), s.plot.At(s.beside(at.X, from+width), low))
	}
}

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

// axisRoom is about what the Y axis takes of the width of a static picture.
const axisRoom = 2 * picture.Centimeter

// layLabels sets the labels of the X axis: in lines where all words are narrow enough, or else slanted.
func (f *figure) layLabels(axis *picture.Axis) {
	slot := (width-axisRoom)/float64(len(f.Labels)) - 5
	style := picture.TextStyle{Size: axis.TickSize}
	var longest float64
	for _, label := range f.Labels {
		for word := range strings.FieldsSeq(label) {
			longest = max(longest, style.Width(word))
		}
	}
	for i, label := range f.Labels {
		if longest <= slot {
			label = inLines(style, label, slot)
		}
		axis.Ticks = append(axis.Ticks, picture.Tick{At: float64(i), Label: label})
	}
	if longest > slot {
		axis.Slant = slant
	}
}

// slant is the angle of labels that have no room beside each other.
const slant = 0.6

// inLines breaks a text at spaces into lines of at most a width.
func inLines(style picture.TextStyle, text string, width float64) string {
	var lines []string
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && style.Width(lines[last]+" "+word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return strings.Join(lines, "\n")
}
