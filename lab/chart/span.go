package chart

import "math"

// spanX returns what the X axis shows: all points, whole bars and labels.
func (f *figure) spanX() span {
	if len(f.Labels) > 0 {
		return span{-0.5, float64(len(f.Labels)) - 0.5}
	}
	all := nothing()
	for _, c := range f.curves {
		half := 0.0
		if c.Mark == Bars {
			half = f.barWidth() / 2
		}
		for _, at := range c.Points {
			all.include(f.beside(at.X, -half), f.beside(at.X, half))
		}
	}
	for _, l := range f.lines {
		if l.Vertical {
			all.include(l.Value, l.Value)
		}
	}
	return all.padded(f.LogX, 0.02)
}

// spanY returns what the Y axis shows: all points with their spread, and the bottom of bars.
func (f *figure) spanY() span {
	all := nothing()
	zero := f.Zero
	for _, c := range f.curves {
		zero = zero || c.Mark == Bars
		for _, at := range c.shown() {
			all.include(at.Y+at.Spread, at.Y)
			if !f.LogY || at.Y > at.Spread {
				all.include(at.Y-at.Spread, at.Y)
			}
		}
	}
	for _, l := range f.lines {
		if !l.Vertical {
			all.include(l.Value, l.Value)
		}
	}
	if zero && !f.LogY {
		all.include(0, 0)
	}
	padded := all.padded(f.LogY, 0.05)
	if zero && !f.LogY && all.low == 0 {
		padded.low = 0
	}
	if zero && !f.LogY && all.high == 0 && all.low < 0 {
		padded.high = 0
	}
	return padded
}

func nothing() span { return span{math.Inf(1), math.Inf(-1)} }

func (s *span) include(a, b float64) {
	s.low, s.high = min(s.low, a, b), max(s.high, a, b)
}

// Limits of axes, so that all that is computed from them is finite.
const least, largest = 1e-307, 8e307

// padded returns the span with a share of it around it, and one of some length if it has none.
func (s span) padded(log bool, share float64) span {
	s = s.around(log, share)
	s.low, s.high = max(s.low, -largest), min(s.high, largest)
	if log {
		s.low = max(s.low, least)
	}
	return s
}

func (s span) around(log bool, share float64) span {
	if log {
		if s.low > s.high {
			return span{1, 10}
		}
		if s.low == s.high {
			return span{s.low / 2, s.high * 2}
		}
		around := math.Pow(s.high/s.low, share)
		return span{s.low / around, s.high * around}
	}
	switch {
	case s.low > s.high:
		return span{0, 1}
	case s.low == s.high && s.low == 0:
		return span{-1, 1}
	case s.high-s.low <= 1e-9*max(math.Abs(s.low), math.Abs(s.high)):
		around := math.Abs(s.low) / 10
		return span{s.low - around, s.high + around}
	}
	around := share * (s.high - s.low)
	return span{s.low - around, s.high + around}
}

// barWidth is the smallest distance of two bars of a series, so that they touch: a difference of X, or of its logarithm
// on a logarithmic axis.
func (f *figure) barWidth() float64 {
	width := math.Inf(1)
	for _, c := range f.curves {
		for i := 1; c.Mark == Bars && i < len(c.Points); i++ {
			gap := c.Points[i].X - c.Points[i-1].X
			if f.LogX {
				gap = math.Log(c.Points[i].X / c.Points[i-1].X)
			}
			if gap > 0 {
				width = min(width, gap)
			}
		}
	}
	if math.IsInf(width, 1) {
		return 1
	}
	return width
}

// beside returns the place that is so far from x, in the units of barWidth.
func (f *figure) beside(x, distance float64) float64 {
	if f.LogX {
		return max(least, min(x*math.Exp(distance), largest))
	}
	return x + distance
}
