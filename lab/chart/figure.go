package chart

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// wholeX reports whether all X are whole numbers, and whether all are powers of two.
func (f *figure) wholeX() (whole, powersOfTwo bool) {
	whole, powersOfTwo = true, true
	for _, c := range f.curves {
		for _, at := range c.Points {
			fraction, _ := math.Frexp(at.X)
			whole = whole && at.X == math.Trunc(at.X)
			powersOfTwo = powersOfTwo && fraction == 0.5
		}
	}
	return whole, powersOfTwo
}

// figure is what is drawn of a chart: its points in order, without those that cannot be shown, and how.
type figure struct {
	Chart
	curves []curve
	lines  []Reference // those that can be shown
	x, y   span
	notes  []string // what is not shown
}

// curve is what is drawn of a series.
type curve struct {
	Series // points in the order of X; Y is NaN where a line has a gap
	color  Color
	width  float64   // of a line, in pixels
	hidden int       // points that cannot be shown
	bases  []float64 // of bars that are stacked: where that of each point stands
}

// span is what an axis shows.
type span struct{ low, high float64 }

// newFigure prepares a chart for drawing.
func newFigure(c Chart) *figure {
	f := &figure{Chart: new(Colors).Assign(c)}
	for _, s := range f.Chart.Series {
		f.curves = append(f.curves, f.curve(s))
	}
	for _, l := range c.Lines {
		if log := l.Vertical && c.LogX || !l.Vertical && c.LogY; finite(l.Value) && (!log || l.Value > 0) {
			f.lines = append(f.lines, l)
		}
	}
	if f.Stacked {
		f.stack()
	}
	if f.x, f.y = f.spanX(), f.spanY(); c.shared != nil {
		f.x, f.y = c.shared.x, c.shared.y
	}
	f.setWidths()
	f.notes = f.missing()
	return f
}

// curve returns the points of a series that can be shown. Of those that cannot, lines keep the place as a gap.
func (f *figure) curve(s Series) curve {
	all := curve{Series: s, color: ColorOf(s.Color)}
	all.Points = nil
	for _, at := range s.Points {
		if !finite(at.X) || f.LogX && at.X <= 0 {
			all.hidden++
			continue
		}
		if !finite(at.Y) || !finite(at.Spread) || f.LogY && at.Y <= 0 {
			all.hidden++
			if !s.Mark.joins() {
				continue
			}
			at.Y, at.Spread = math.NaN(), 0
		}
		all.Points = append(all.Points, at)
	}
	slices.SortStableFunc(all.Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
	return all
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// empty reports whether no point of the curve can be shown.
func (c curve) empty() bool { return c.hidden == len(c.Series.Points) || len(c.shown()) == 0 }

// shown returns the points without gaps.
func (c curve) shown() (points []Point) {
	for _, at := range c.Points {
		if finite(at.Y) {
			points = append(points, at)
		}
	}
	return points
}

// Widths of lines, in pixels.
const (
	thin       = 1.6
	wider      = 3.2 // for each later line that would hide it, so that its colour is seen on both sides
	mostWidens = 4
	fp32Wider  = 1.6 // where it does not run with the later lines
)

// setWidths makes the lines wider that later lines would hide: FP32 under FP8, and whatever has much the same points
// as later lines. Where several coincide, each is seen around the next.
func (f *figure) setWidths() {
	for i := range f.curves {
		c := &f.curves[i]
		hiding, more := 0, 0.0
		for _, later := range f.curves[i+1:] {
			switch {
			case !c.Mark.joins() || !later.Mark.joins():
			case f.alike(c.Points, later.Points):
				hiding++
			case strings.HasPrefix(c.Name, "FP32"):
				more = fp32Wider
			}
		}
		c.width = thin + max(more, wider*float64(min(hiding, mostWidens)))
	}
}

// alike reports whether most of the points are nearly at the same place of the picture.
func (f *figure) alike(a, b []Point) bool {
	if len(a) == 0 || len(a) != len(b) {
		return false
	}
	near := 0
	for i := range a {
		if a[i].X == b[i].X && math.Abs(f.height(a[i].Y)-f.height(b[i].Y)) <= 1./200 {
			near++
		}
	}
	return 2*near > len(a)
}

// height returns the place of a value on the Y axis, from 0 to 1.
func (f *figure) height(y float64) float64 { return f.y.share(y, f.LogY) }

// across returns the place of a value on the X axis, from 0 to 1.
func (f *figure) across(x float64) float64 { return f.x.share(x, f.LogX) }

func (s span) share(value float64, log bool) float64 {
	if log {
		return math.Log(value/s.low) / math.Log(s.high/s.low)
	}
	return (value - s.low) / (s.high - s.low)
}

func (c curve) spreads() bool {
	for _, at := range c.Points {
		if at.Spread > 0 {
			return true
		}
	}
	return false
}

// stack says where bars stand that are stacked: on those of the curves before.
func (f *figure) stack() {
	tops := map[float64]float64{} // by X
	for i := range f.curves {
		c := &f.curves[i]
		if c.Mark != Bars {
			continue
		}
		for _, at := range c.Points {
			c.bases = append(c.bases, tops[at.X])
		}
		for _, at := range c.Points {
			tops[at.X] += at.Y
		}
	}
}
