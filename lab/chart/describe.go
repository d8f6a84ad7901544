package chart

import (
	"fmt"
	"slices"
	"strings"
)

// missing says how many points cannot be shown, and why.
func (f *figure) missing() (notes []string) {
	why := "not finite"
	if f.LogX || f.LogY {
		why += ", or not above 0 as a logarithmic axis needs them"
	}
	for _, c := range f.curves {
		if c.hidden > 0 {
			of := ""
			if c.Name != "" {
				of = c.Name + ": "
			}
			notes = append(notes, fmt.Sprintf("%s%d of %d points not shown (%s).", of, c.hidden, c.hidden+len(c.shown()), why))
		}
	}
	if !slices.ContainsFunc(f.curves, func(c curve) bool { return len(c.shown()) > 0 }) {
		notes = append(notes, "There is nothing to show.")
	}
	for _, l := range f.Lines {
		if !f.shows(l) {
			notes = append(notes, fmt.Sprintf("The line %q at %v is not shown (%s).", l.Name, l.Value, why))
		}
	}
	return notes
}

func (f *figure) shows(l Reference) bool { return slices.Contains(f.lines, l) }

// description says what the chart shows.
func (f *figure) description() string {
	if f.Chart.Description != "" {
		return f.Chart.Description
	}
	var b strings.Builder
	b.WriteString("A chart")
	if f.Y != "" {
		b.WriteString(" of " + f.Y)
	}
	if f.X != "" {
		b.WriteString(" over " + f.X)
	}
	b.WriteString(".")
	for _, c := range f.curves {
		b.WriteString(" " + f.summary(c))
	}
	for _, l := range f.lines {
		axis := "Y"
		if l.Vertical {
			axis = "X"
		}
		fmt.Fprintf(&b, " A line at %s = %s: %s.", axis, number(l.Value), l.Name)
	}
	return b.String()
}

// summary says where a curve begins and ends, and what its least and largest value are.
func (f *figure) summary(c curve) string {
	name := c.Name
	if name == "" {
		name = "Values"
	}
	points := c.shown()
	if len(points) == 0 {
		return name + ": no points."
	}
	least, largest := points[0], points[0]
	for _, at := range points {
		if at.Y < least.Y {
			least = at
		}
		if at.Y > largest.Y {
			largest = at
		}
	}
	if len(points) == 1 {
		return fmt.Sprintf("%s: %s at %s.", name, number(points[0].Y), f.place(points[0].X))
	}
	last := points[len(points)-1]
	return fmt.Sprintf("%s: %d points, from %s at %s to %s at %s; least %s at %s, largest %s at %s.", name, len(points),
		number(points[0].Y), f.place(points[0].X), number(last.Y), f.place(last.X),
		number(least.Y), f.place(least.X), number(largest.Y), f.place(largest.X))
}

// place returns what an X is called.
func (f *figure) place(x float64) string {
	if i := int(x); len(f.Labels) > 0 && float64(i) == x && i >= 0 && i < len(f.Labels) {
		return f.Labels[i]
	}
	return number(x)
}

// number returns a figure for people.
func number(x float64) string {
	text := fmt.Sprintf("%.5g", x)
	if strings.Contains(text, "e") {
		return short(text)
	}
	return text
}
