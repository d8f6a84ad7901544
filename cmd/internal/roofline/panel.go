package roofline

import (
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/octavo-fp8/octavo/bench"
)

// panel is the roofline for one number of workers.
type panel struct {
	title  string
	bounds bounds
	roofs  roofs
	shapes shapes
	series []*series
}

func newPanel(r *bench.Report, workers int, b bounds) panel {
	p := panel{title: fmt.Sprintf("%d workers", workers), bounds: b, roofs: newRoofs(r, workers)}
	if workers == 1 {
		p.title = "1 worker"
	}
	for _, product := range r.Products {
		if product.Workers == workers {
			p.shapes.add(product.Shape)
			p.point(product)
		}
	}
	return p
}

// point adds a product to its series.
func (p *panel) point(product bench.Product) {
	for _, s := range p.series {
		if s.by == product.By && s.level == product.Level && s.packed == product.Packed {
			s.add(product)
			return
		}
	}
	s := newSeries(product)
	s.add(product)
	p.series = append(p.series, s)
}

func (p panel) draw(c draw.Canvas) {
	chart := plot.New()
	chart.Title.Text = p.title
	chart.Title.TextStyle = textStyle(12, draw.XCenter, draw.YTop)
	chart.Title.Padding = namesHeight
	axis(&chart.X, p.bounds.minX, p.bounds.maxX)
	axis(&chart.Y, p.bounds.minY, p.bounds.maxY)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = faint, faint
	chart.Add(grid, p.shapes, p.roofs)
	for _, s := range p.series {
		chart.Add(s)
	}
	// Adding may have widened what must be the same in all panels.
	chart.X.Min, chart.X.Max, chart.Y.Min, chart.Y.Max = p.bounds.minX, p.bounds.maxX, p.bounds.minY, p.bounds.maxY
	area := draw.Crop(c, labelHeight, 0, labelHeight, 0)
	chart.Draw(area)
	data := chart.DataCanvas(area)
	center := data.Center()
	label := textStyle(11, draw.XCenter, draw.YBottom)
	c.FillText(label, vg.Point{X: center.X, Y: c.Min.Y}, "arithmetic intensity, FLOP per byte")
	label.Rotation, label.YAlign = math.Pi/2, draw.YTop
	c.FillText(label, vg.Point{X: c.Min.X, Y: center.Y}, "GFLOP/s")
}

// labelHeight is that of an axis's label. The plotter would draw labels too, but
// measures the room that they take as if no axis were logarithmic.
const labelHeight = 0.55 * vg.Centimeter

func axis(a *plot.Axis, least, most float64) {
	a.Tick.Label = textStyle(9, a.Tick.Label.XAlign, a.Tick.Label.YAlign)
	a.Scale = plot.LogScale{}
	a.Tick.Marker = plot.TickerFunc(decades)
	a.Min, a.Max = least, most
	a.Padding = 0
}

// decades returns 1, 2 and 5 times the powers of ten.
func decades(least, most float64) (ticks []plot.Tick) {
	for power := math.Pow(10, math.Floor(math.Log10(least))); power <= most; power *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if v := step * power; v >= least && v <= most {
				ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', -1, 64)})
			}
		}
	}
	return ticks
}

// bounds are those of the axes, the same in all panels.
type bounds struct{ minX, maxX, minY, maxY float64 }

// boundsOf leaves room for names of slopes on the left.
func boundsOf(r *bench.Report) bounds {
	b := bounds{math.Inf(1), 0, math.Inf(1), 0}
	for _, p := range r.Products {
		b.minX, b.maxX = min(b.minX, p.Intensity), max(b.maxX, p.Intensity)
		b.minY, b.maxY = min(b.minY, p.Best), max(b.maxY, p.Best)
	}
	for _, m := range r.Limits.FMA {
		b.maxY = max(b.maxY, m.Rate)
	}
	return bounds{b.minX / 8, b.maxX * 1.8, b.minY / 1.6, b.maxY * 1.6}
}

// namesHeight is that of the shapes' names above a panel.
const namesHeight = 3.6 * vg.Centimeter
