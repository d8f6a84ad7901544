// Package chart draws plots for the pages that commands write: each becomes one
// SVG element that needs nothing else.
package chart

import (
	"bytes"
	"html/template"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is a plot of some series over common axes.
type Chart struct {
	Title, X, Y string
	LogX, LogY  bool // a logarithmic axis, on which only positive values are shown

	// Labels, where there are any, stand at X = 0, 1, ... instead of numbers.
	Labels []string

	Series []Series
}

// Size of a chart on a page.
const (
	width       = 26 * vg.Centimeter
	height      = 10 * vg.Centimeter
	legendWidth = 8.5 * vg.Centimeter // of that
)

// palette is Okabe and Ito's, which colour-blind readers can tell apart.
var palette = []color.RGBA{
	{0x00, 0x72, 0xB2, 0xFF}, {0xD5, 0x5E, 0x00, 0xFF}, {0x00, 0x9E, 0x73, 0xFF}, {0xCC, 0x79, 0xA7, 0xFF},
	{0xE6, 0x9F, 0x00, 0xFF}, {0x56, 0xB4, 0xE9, 0xFF}, {0x80, 0x80, 0x80, 0xFF}, {0x00, 0x00, 0x00, 0xFF},
}

// SVG draws the chart, the names of its series to the right. Points that are not finite, or that a logarithmic axis
// cannot show, are left out, and so is a series without any.
func (c Chart) SVG() (template.HTML, error) {
	p, legend := c.axes(), newLegend()
	for i, s := range c.Series {
		s = c.visible(s)
		if len(s.Points) == 0 {
			continue
		}
		thumbnails, err := s.draw(p, palette[i%len(palette)])
		if err != nil {
			return "", err
		}
		legend.Add(s.Name, thumbnails...)
	}
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	if len(c.Series) > 1 {
		p.Draw(draw.Crop(whole, 0, -legendWidth, 0, 0))
		legend.Draw(draw.Crop(whole, width-legendWidth, 0, 0, -vg.Centimeter))
	} else {
		p.Draw(draw.Crop(whole, 0, -vg.Centimeter/2, 0, 0))
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return "", err
	}
	// An XML declaration has no place inside a page.
	_, element, _ := bytes.Cut(svg.Bytes(), []byte("<svg"))
	return template.HTML("<svg" + string(element)), nil
}

func (c Chart) axes() *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.Title, c.X, c.Y
	p.X.Tick.Marker, p.Y.Tick.Marker = distinct{}, distinct{}
	if c.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: 6}
	}
	if c.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: 6}
	}
	if len(c.Labels) > 0 {
		p.NominalX(c.Labels...)
	}
	p.Add(plotter.NewGrid())
	return p
}

// distinct labels the ticks of a linear axis with as many digits as tell them apart,
// which the plotter's own labels may not.
type distinct struct{ plot.DefaultTicks }

// Ticks implements plot.Ticker.
func (d distinct) Ticks(low, high float64) []plot.Tick {
	ticks := d.DefaultTicks.Ticks(low, high)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = strconv.FormatFloat(t.Value, 'g', 4, 64)
		}
	}
	return ticks
}

// newLegend returns a list of names that are left-aligned: browsers' letters are
// larger than the plotter thinks, and so have room to the right.
func newLegend() plot.Legend {
	l := plot.NewLegend()
	l.Top, l.Left = true, true
	l.Padding = vg.Points(4)
	l.XOffs = vg.Points(8)
	return l
}

// visible returns s without the points that cannot be drawn.
func (c Chart) visible(s Series) Series {
	points := s.Points
	s.Points = nil
	for _, at := range points {
		if finite(at.X) && finite(at.Y) && finite(at.Spread) && (!c.LogX || at.X > 0) && (!c.LogY || at.Y-at.Spread > 0) {
			s.Points = append(s.Points, at)
		}
	}
	return s
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
