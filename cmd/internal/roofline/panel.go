package roofline

import (
	"fmt"
	"math"
	"strconv"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/lab/picture"
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

func (p panel) draw(to *picture.Picture, area picture.Rectangle) {
	to.Text(textStyle(12, picture.Center, picture.Top), picture.Point{X: area.Center().X, Y: area.Max.Y}, p.title)
	area.Max.Y -= namesHeight + titleHeight/2
	plot := picture.Plot{
		Color: picture.Colors{Axis: black, Grid: faint, Text: black},
		X:     axis("arithmetic intensity, FLOP per byte", p.bounds.minX, p.bounds.maxX),
		Y:     axis("GFLOP/s", p.bounds.minY, p.bounds.maxY),
	}
	plot.Draw(to, area)
	p.shapes.draw(to, &plot)
	p.roofs.draw(to, &plot)
	for _, s := range p.series {
		s.draw(to, &plot)
	}
}

func axis(label string, least, most float64) picture.Axis {
	return picture.Axis{Label: label, LabelSize: 11, Min: least, Max: most, Log: true, Ticks: decades(least, most), TickSize: 9}
}

// decades returns 1, 2 and 5 times the powers of ten.
func decades(least, most float64) (ticks []picture.Tick) {
	for power := math.Pow(10, math.Floor(math.Log10(least))); power <= most; power *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if v := step * power; v >= least && v <= most {
				ticks = append(ticks, picture.Tick{At: v, Label: strconv.FormatFloat(v, 'f', -1, 64)})
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
const namesHeight = 3.6 * picture.Centimeter
