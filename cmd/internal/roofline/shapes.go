package roofline

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/lab/picture"
)

// shapes are named above a panel, each over a line at its intensity.
type shapes struct{ all []bench.Shape }

func (s *shapes) add(shape bench.Shape) {
	if !slices.Contains(s.all, shape) {
		s.all = append(s.all, shape)
	}
}

func (s shapes) draw(to *picture.Picture, p *picture.Plot) {
	const leader, distance = 10, 12 // points
	all := slices.Clone(s.all)
	slices.SortFunc(all, func(a, b bench.Shape) int { return int(math.Copysign(1, a.Intensity()-b.Intensity())) })
	var at []float64
	for _, shape := range all {
		at = append(at, p.At(shape.Intensity(), p.Y.Min).X)
	}
	name := textStyle(9, picture.Left, picture.Center)
	name.Rotation = math.Pi / 2
	low, high := p.Data.Min.Y, p.Data.Max.Y
	for i, place := range spread(at, distance) {
		to.Line(picture.Pen{Color: light, Width: 0.5}, picture.Point{X: at[i], Y: low}, picture.Point{X: at[i], Y: high}, picture.Point{X: place, Y: high + leader})
		to.Text(name, picture.Point{X: place, Y: high + leader + 3}, all[i].String())
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
