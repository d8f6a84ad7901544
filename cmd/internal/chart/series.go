package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Series is one curve of a chart.
type Series struct {
	Name   string
	Points []Point
	Mark   Mark
	Dashed bool // of a line
}

// Point is a place in a chart. A Spread above 0 is drawn as a bar from Y-Spread
// to Y+Spread.
type Point struct{ X, Y, Spread float64 }

// Mark is how the points of a series are shown.
type Mark uint8

const (
	Line    Mark = iota // joined
	Crosses             // each on its own
	Rings
	Dots
	Joined // dots on a line
)

// draw adds s to p and returns what stands for it in a legend.
func (s Series) draw(p *plot.Plot, c color.Color) (thumbnails []plot.Thumbnailer, err error) {
	if s.Mark == Line || s.Mark == Joined {
		curve, err := plotter.NewLine(s)
		if err != nil {
			return nil, err
		}
		curve.Color, curve.Width = c, vg.Points(1.2)
		if s.Dashed {
			curve.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
		}
		p.Add(curve)
		thumbnails = append(thumbnails, curve)
	}
	if glyph := s.Mark.glyph(); glyph != nil {
		dots, err := plotter.NewScatter(s)
		if err != nil {
			return nil, err
		}
		dots.Color, dots.Shape, dots.Radius = c, glyph, vg.Points(3)
		p.Add(dots)
		thumbnails = append(thumbnails, dots)
	}
	if s.spreads() {
		bars, err := plotter.NewYErrorBars(s)
		if err != nil {
			return nil, err
		}
		bars.Color = c
		p.Add(bars)
	}
	return thumbnails, nil
}

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

func (s Series) spreads() bool {
	for _, at := range s.Points {
		if at.Spread > 0 {
			return true
		}
	}
	return false
}

// Len implements plotter.XYer.
func (s Series) Len() int { return len(s.Points) }

// XY implements plotter.XYer.
func (s Series) XY(i int) (x, y float64) { return s.Points[i].X, s.Points[i].Y }

// YError implements plotter.YErrorer.
func (s Series) YError(i int) (low, high float64) { return s.Points[i].Spread, s.Points[i].Spread }
