package roofline

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// roofs are what the machine can do: flat ones of its arithmetic, and slopes of
// its reading. It is a [plot.Plotter].
type roofs struct {
	flat   []bench.FMALimit
	slopes []bench.ReadLimit
}

func newRoofs(r *bench.Report, workers int) (f roofs) {
	for _, m := range r.Limits.FMA {
		if m.Workers == workers {
			f.flat = append(f.flat, m)
		}
	}
	for _, m := range r.Limits.Read {
		if m.Workers == workers {
			f.slopes = append(f.slopes, m)
		}
	}
	return f
}

// Plot implements [plot.Plotter].
func (f roofs) Plot(c draw.Canvas, p *plot.Plot) {
	for _, m := range f.slopes {
		f.drawSlope(c, p, m)
	}
	for _, m := range f.flat {
		f.drawFlat(c, p, m)
	}
}

// drawFlat draws a roof from where the fastest reading meets it, with its name
// where no slope is and products are rare.
func (f roofs) drawFlat(c draw.Canvas, p *plot.Plot, m bench.FMALimit) {
	x, y := p.Transforms(&c)
	left, free := p.X.Max, p.X.Min
	for _, s := range f.slopes {
		left, free = min(left, m.Rate/s.Rate), max(free, min(1.4*m.Rate, f.top())/s.Rate)
	}
	if len(f.slopes) == 0 {
		left = p.X.Min
	}
	left, free = max(left, p.X.Min), max(free, p.X.Min)
	color := looks[m.Level].color
	c.StrokeLine2(draw.LineStyle{Color: color, Width: vg.Points(1.3)}, x(left), y(m.Rate), x(p.X.Max), y(m.Rate))
	name := textStyle(9, draw.XLeft, draw.YBottom)
	name.Color = color
	c.FillText(name, vg.Point{X: x(free) + vg.Points(6), Y: y(m.Rate) + vg.Points(3)}, fmt.Sprintf("%s: %s GFLOP/s", m.Level, textout.Rate(m.Rate)))
}

// top is the highest flat roof.
func (f roofs) top() (rate float64) {
	for _, m := range f.flat {
		rate = max(rate, m.Rate)
	}
	return rate
}

// drawSlope draws a slope up to the highest roof, with its name along it.
func (f roofs) drawSlope(c draw.Canvas, p *plot.Plot, m bench.ReadLimit) {
	x, y := p.Transforms(&c)
	right := min(f.top()/m.Rate, p.X.Max)
	left := max(p.X.Min, p.Y.Min/m.Rate)
	if left >= right {
		return
	}
	from := vg.Point{X: x(left), Y: y(left * m.Rate)}
	to := vg.Point{X: x(right), Y: y(right * m.Rate)}
	c.StrokeLine2(draw.LineStyle{Color: dark, Width: vg.Points(1), Dashes: []vg.Length{vg.Points(4), vg.Points(2)}}, from.X, from.Y, to.X, to.Y)
	angle := math.Atan2(float64(to.Y-from.Y), float64(to.X-from.X))
	name := textStyle(9, draw.XLeft, draw.YBottom)
	name.Color, name.Rotation = dark, angle
	at := from.Add(vg.Point{
		X: vg.Length(6*math.Cos(angle) - 2*math.Sin(angle)),
		Y: vg.Length(6*math.Sin(angle) + 2*math.Cos(angle)),
	})
	c.FillText(name, at, fmt.Sprintf("%d MiB at %s GB/s", m.Bytes>>20, textout.Rate(m.Rate)))
}
