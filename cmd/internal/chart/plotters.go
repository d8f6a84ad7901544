package chart

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

func (m Mark) glyph() draw.GlyphDrawer {
	switch m {
	case Crosses:
		return cross{}
	case Rings:
		return ring{}
	case Dots, Joined:
		return draw.CircleGlyph{}
	}
	return nil
}

// cross and ring are those of the plotter with strokes that can be seen.
type (
	cross struct{}
	ring  struct{}
)

const strokeOfMarks = 1.2

// DrawGlyph implements draw.GlyphDrawer.
func (cross) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	style, r := draw.LineStyle{Color: sty.Color, Width: strokeOfMarks}, 0.9*sty.Radius
	c.StrokeLine2(style, at.X-r, at.Y-r, at.X+r, at.Y+r)
	c.StrokeLine2(style, at.X-r, at.Y+r, at.X+r, at.Y-r)
}

// DrawGlyph implements draw.GlyphDrawer.
func (ring) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	c.SetLineStyle(draw.LineStyle{Color: sty.Color, Width: strokeOfMarks})
	var p vg.Path
	p.Move(vg.Point{X: at.X + sty.Radius, Y: at.Y})
	p.Arc(at, sty.Radius, 0, 2*math.Pi)
	p.Close()
	c.Stroke(p)
}

// lone draws a point of a line that has gaps on both sides. It implements plot.Plotter.
type lone struct {
	Point
	color color.Color
}

// Plot implements plot.Plotter.
func (l *lone) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	c.DrawGlyph(draw.GlyphStyle{Color: l.color, Radius: vg.Points(2), Shape: draw.CircleGlyph{}}, vg.Point{X: toX(l.X), Y: toY(l.Y)})
}

// xys implements plotter.XYer.
type xys []Point

func (p xys) Len() int                    { return len(p) }
func (p xys) XY(i int) (float64, float64) { return p[i].X, p[i].Y }

// mostBuckets is how many parts of the X axis a static picture tells apart.
const mostBuckets = 1200

// thinned returns what is seen of a long line: in each narrow part of the axis its first, lowest, highest and last point.
func (f *figure) thinned(p xys) xys {
	if len(p) <= 4*mostBuckets {
		return p
	}
	bucket := func(i int) int { return int(f.across(p[i].X) * mostBuckets) }
	var kept xys
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
func (f *figure) apart(p xys) xys {
	if len(p) <= 4*mostBuckets {
		return p
	}
	type place struct{ across, up int }
	seen := make(map[place]bool)
	var kept xys
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

// bars draws those of a series, of so many that stand side by side. It implements plot.Plotter and plot.Thumbnailer.
type bars struct {
	*figure
	points      []Point
	which, many int
	color       color.Color
}

// newBars returns those of the curve of that index.
func (f *figure) newBars(index int) *bars {
	b := &bars{figure: f, points: f.curves[index].shown(), color: rgba(f.curves[index].color.Light)}
	for i, c := range f.curves {
		if c.Mark != Bars {
			continue
		}
		if i < index {
			b.which++
		}
		b.many++
	}
	return b
}

// Plot implements plot.Plotter.
func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	bottom := max(p.Y.Min, min(0, p.Y.Max))
	width := 0.9 * b.barWidth() / float64(b.many)
	for _, at := range b.points {
		from := (float64(b.which) - float64(b.many)/2) * width
		left, right := toX(b.beside(at.X, from)), toX(b.beside(at.X, from+width))
		c.FillPolygon(b.color, []vg.Point{{X: left, Y: toY(bottom)}, {X: left, Y: toY(at.Y)}, {X: right, Y: toY(at.Y)}, {X: right, Y: toY(bottom)}})
	}
}

// Thumbnail implements plot.Thumbnailer.
func (b *bars) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(b.color, []vg.Point{c.Min, {X: c.Min.X, Y: c.Max.Y}, c.Max, {X: c.Max.X, Y: c.Min.Y}})
}
