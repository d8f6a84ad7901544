package roofline

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/picture"
)

// roofs are what the machine can do: flat ones of its arithmetic, and slopes of
// its reading.
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

func (f roofs) draw(to *picture.Picture, p *picture.Plot) {
	for _, m := range f.slopes {
		f.drawSlope(to, p, m)
	}
	for _, m := range f.flat {
		f.drawFlat(to, p, m)
	}
}

// drawFlat draws a roof from where the fastest reading meets it, with its name
// where no slope is and products are rare.
func (f roofs) drawFlat(to *picture.Picture, p *picture.Plot, m bench.FMALimit) {
	left, free := p.X.Max, p.X.Min
	for _, s := range f.slopes {
		left, free = min(left, m.Rate/s.Rate), max(free, min(1.4*m.Rate, f.top())/s.Rate)
	}
	if len(f.slopes) == 0 {
		left = p.X.Min
	}
	left, free = max(left, p.X.Min), max(free, p.X.Min)
	name := textStyle(9, picture.Left, picture.Bottom)
	name.Color = dark
	if l, known := looks[m.Level]; known {
		name.Color = l.color
	}
	to.Line(picture.Pen{Color: name.Color, Width: 1.3}, p.At(left, m.Rate), p.At(p.X.Max, m.Rate))
	to.Text(name, p.At(free, m.Rate).Add(6, 2), fmt.Sprintf("%s: %s GFLOP/s", m.Level, textout.Rate(m.Rate)))
}

// top is the highest flat roof.
func (f roofs) top() (rate float64) {
	for _, m := range f.flat {
		rate = max(rate, m.Rate)
	}
	return rate
}

// drawSlope draws a slope up to the highest roof, with its name along it.
func (f roofs) drawSlope(to *picture.Picture, p *picture.Plot, m bench.ReadLimit) {
	right := min(f.top()/m.Rate, p.X.Max)
	left := max(p.X.Min, p.Y.Min/m.Rate)
	if left >= right {
		return
	}
	from, till := p.At(left, left*m.Rate), p.At(right, right*m.Rate)
	to.Line(picture.Pen{Color: dark, Width: 1, Dashes: []float64{4, 2}}, from, till)
	angle := math.Atan2(till.Y-from.Y, till.X-from.X)
	name := textStyle(9, picture.Left, picture.Bottom)
	name.Color, name.Rotation = dark, angle
	at := from.Add(6*math.Cos(angle)-math.Sin(angle), 6*math.Sin(angle)+math.Cos(angle))
	to.Text(name, at, fmt.Sprintf("%d MiB at %s GB/s", m.Bytes>>20, textout.Rate(m.Rate)))
}
