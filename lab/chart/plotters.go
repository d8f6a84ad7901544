package chart

import (
	"slices"

	"github.com/octavo-fp8/octavo/lab/picture"
)

// mark draws one of the marks. Those out of the plot are not drawn.
func (s *static) mark(to *picture.Picture, c *curve, at picture.Point) {
	const radius, stroke = 3, 1.2
	shade := rgb(c.color.Light)
	pen := picture.Pen{Color: shade, Width: stroke}
	switch c.Mark {
	case Crosses:
		const r = 0.9 * radius
		to.Line(pen, at.Add(-r, -r), at.Add(r, r))
		to.Line(pen, at.Add(-r, r), at.Add(r, -r))
	case Rings:
		to.Ring(pen, at, radius)
	case Dots, Joined:
		to.Disc(shade, at, radius)
	}
}

// mostBuckets is how many parts of the X axis a static picture tells apart.
const mostBuckets = 1200

// thinned returns what is seen of a long line: in each narrow part of the axis its first, lowest, highest and last point.
func (f *figure) thinned(p []Point) []Point {
	if len(p) <= 4*mostBuckets {
		return p
	}
	bucket := func(i int) int { return int(f.across(p[i].X) * mostBuckets) }
	var kept []Point
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
func (f *figure) apart(p []Point) []Point {
	if len(p) <= 4*mostBuckets {
		return p
	}
	type place struct{ across, up int }
	seen := make(map[place]bool)
	var kept []Point
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
func (c curve) runs() (all [][]Point) {
	var run []Point
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

// spread draws a bar from low to high, with a stroke at both ends. On a logarithmic axis one that would leave it ends
// at its bottom.
func (s *static) spread(to *picture.Picture, c *curve, at Point) {
	const half = 2.5 // of a stroke
	low := at.Y - at.Spread
	if s.LogY {
		low = max(low, s.y.low)
	}
	pen := picture.Pen{Color: rgb(c.color.Light), Width: 1}
	from, till := s.plot.At(at.X, low), s.plot.At(at.X, at.Y+at.Spread)
	to.Line(pen, from, till)
	to.Line(pen, from.Add(-half, 0), from.Add(half, 0))
	to.Line(pen, till.Add(-half, 0), till.Add(half, 0))
}

// bars draws those of the curve of that index, beside those of others.
func (s *static) bars(to *picture.Picture, index int) {
	which, many := 0, 0
	for i, c := range s.curves {
		if c.Mark != Bars {
			continue
		}
		if i < index {
			which++
		}
		many++
	}
	c := s.curves[index]
	bottom := max(s.y.low, min(0, s.y.high))
	width := 0.9 * s.barWidth() / float64(many)
	from := (float64(which) - float64(many)/2) * width
	for _, at := range c.shown() {
		to.Fill(rgb(c.color.Light), s.plot.At(s.beside(at.X, from), bottom), s.plot.At(s.beside(at.X, from), at.Y),
			s.plot.At(s.beside(at.X, from+width), at.Y), s.plot.At(s.beside(at.X, from+width), bottom))
	}
}
