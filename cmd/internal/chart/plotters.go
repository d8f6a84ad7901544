package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func (m Mark) glyph() draw.GlyphDrawer {
	switch m {
	case Crosses:
		return draw.CrossGlyph{}
	case Rings:
		return draw.RingGlyph{}
	case Dots, Joined:
		return draw.CircleGlyph{}
	}
	return nil
}

// xys implements plotter.XYer.
type xys []Point

func (p xys) Len() int                    { return len(p) }
func (p xys) XY(i int) (float64, float64) { return p[i].X, p[i].Y }

// runs returns the points between the gaps of a line.
func (c curve) runs() (all []xys) {
	var run xys
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

func (c curve) spreads() bool {
	for _, at := range c.Points {
		if at.Spread > 0 {
			return true
		}
	}
	return false
}

// errorBars implements plotter.YErrorer. On a logarithmic axis a bar that would leave it ends at its bottom.
type errorBars struct {
	xys
	bottom float64
	log    bool
}

func (e errorBars) YError(i int) (low, high float64) {
	at := e.xys[i]
	low = at.Spread
	if e.log && at.Y-low < e.bottom {
		low = at.Y - e.bottom
	}
	return low, at.Spread
}

// bars implements plot.Plotter and plot.Thumbnailer.
type bars struct {
	curve
	color color.Color
}

// Plot implements plot.Plotter.
func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	bottom := max(p.Y.Min, min(0, p.Y.Max))
	half := 0.45 * b.barWidth()
	for _, at := range b.shown() {
		left, right := toX(at.X-half), toX(at.X+half)
		c.FillPolygon(b.color, []vg.Point{{X: left, Y: toY(bottom)}, {X: left, Y: toY(at.Y)}, {X: right, Y: toY(at.Y)}, {X: right, Y: toY(bottom)}})
	}
}

// Thumbnail implements plot.Thumbnailer.
func (b *bars) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(b.color, []vg.Point{c.Min, {X: c.Min.X, Y: c.Max.Y}, c.Max, {X: c.Max.X, Y: c.Min.Y}})
}
