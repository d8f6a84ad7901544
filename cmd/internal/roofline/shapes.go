package roofline

import (
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/octavo-fp8/octavo/bench"
)

// shapes are named above a panel, each over a line at its intensity. It is a
// [plot.Plotter].
type shapes struct{ all []bench.Shape }

func (s *shapes) add(shape bench.Shape) {
	if !slices.Contains(s.all, shape) {
		s.all = append(s.all, shape)
	}
}

// Plot implements [plot.Plotter].
func (s shapes) Plot(c draw.Canvas, p *plot.Plot) {
	const leader, distance = 10, 12 // points
	all := slices.Clone(s.all)
	slices.SortFunc(all, func(a, b bench.Shape) int { return int(math.Copysign(1, a.Intensity()-b.Intensity())) })
	x, _ := p.Transforms(&c)
	var at []float64
	for _, shape := range all {
		at = append(at, float64(x(shape.Intensity())))
	}
	line := draw.LineStyle{Color: light, Width: vg.Points(0.5)}
	name := textStyle(9, draw.XLeft, draw.YCenter)
	name.Rotation = math.Pi / 2
	for i, place := range spread(at, distance) {
		from, to := vg.Length(at[i]), vg.Length(place)
		c.StrokeLines(line, []vg.Point{{X: from, Y: c.Min.Y}, {X: from, Y: c.Max.Y}, {X: to, Y: c.Max.Y + leader}})
		c.FillText(name, vg.Point{X: to, Y: c.Max.Y + leader + 3}, all[i].String())
	}
}

// spread moves rising numbers as little as it takes to have them some distance
// apart: those that are too close become a group around their mean.
func spread(x []float64, distance float64) []float64 {
	type group struct {
		mean float64 // of x[i] - i*distance
		n    int
	}
	var groups []group
	for i, v := range x {
		g := group{v - float64(i)*distance, 1}
		for len(groups) > 0 && groups[len(groups)-1].mean > g.mean {
			last := groups[len(groups)-1]
			groups = groups[:len(groups)-1]
			n := last.n + g.n
			g = group{(last.mean*float64(last.n) + g.mean*float64(g.n)) / float64(n), n}
		}
		groups = append(groups, g)
	}
	var placed []float64
	for _, g := range groups {
		for range g.n {
			placed = append(placed, g.mean+float64(len(placed))*distance)
		}
	}
	return placed
}
