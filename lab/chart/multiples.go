package chart

import "slices"

// shared is what the axes of small multiples show.
type shared struct {
	x, y span
	bar  float64 // width of bars
}

// Multiples returns the charts, whose axes are of one kind, as small multiples: all show the
// same span of X and Y, so that they can be compared by eye. Bars have a width of bar, and those
// of 1 on a logarithmic axis have a height.
func Multiples(charts []Chart, bar float64) (all []Chart) {
	common := &shared{nothing(), nothing(), bar}
	for _, c := range charts {
		c.shared = nil
		f := newFigure(c)
		common.x.include(f.x.low, f.x.high)
		common.y.include(f.y.low, f.y.high)
		if f.LogY && slices.ContainsFunc(f.curves, func(c curve) bool { return c.Mark == Bars }) {
			common.y.include(0.5, 1)
		}
		c.shared = common
		all = append(all, c)
	}
	return all
}

// IsMultiple reports whether the chart is one of [Multiples].
func (c Chart) IsMultiple() bool { return c.shared != nil }
