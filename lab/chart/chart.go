// Package chart describes charts once and draws them twice: as a static picture (SVG and PNG), and as the data from
// which the script of a page draws one that can be zoomed and asked for values. Both show the same points in the same
// colours, and say how many points they cannot show.
package chart

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Chart is a plot of some series over common axes.
type Chart struct {
	Title, X, Y string
	LogX, LogY  bool // a logarithmic axis, on which only positive values can be shown

	// Description says what the chart shows, for who cannot see it. Without one, it is made from the series.
	Description string

	// Labels, where there are any, stand at X = 0, 1, ... instead of numbers.
	Labels []string

	Zero    bool        // the Y axis includes 0, at which there is a line
	Smooth  bool        // a page offers to smooth the lines
	Stacked bool        // bars at the same X stand on each other, the first series below; none is negative
	Lines   []Reference // lines that are no data

	Series []Series

	shared *shared // nil: the axes are its own
}

// Reference is a line across a chart: a limit, a goal, an event.
type Reference struct {
	Name     string
	Value    float64 // of Y, or of X where the line is vertical
	Vertical bool
}

// Series is one curve of a chart, or one group of marks.
type Series struct {
	Name   string
	Points []Point // drawn in the order of X
	Mark   Mark
	Dashed bool // of a line

	// Color is what the series is about: the same thing has the same colour in all charts. Without one it is Name.
	Color Key
}

// Point is a place in a chart. A Spread above 0 is drawn as a bar from Y-Spread to Y+Spread. A line has a gap where Y
// is not finite. A Name is shown to who points at it.
type Point struct {
	X, Y, Spread float64
	Name         string
}

// Mark is how the points of a series are shown.
type Mark uint8

const (
	Line    Mark = iota // joined
	Crosses             // each on its own
	Rings
	Dots
	Joined // dots on a line
	Bars   // from 0, or from the bottom of a logarithmic axis
	Dashes // a short level stroke each
)

func (m Mark) joins() bool { return m == Line || m == Joined }

// Describe says what the chart shows: its Description, or else one made from the series.
func (c Chart) Describe() string { return newFigure(c).description() }

// Missing says how many points the chart cannot show, and why; nothing if it shows all.
func (c Chart) Missing() []string { return newFigure(c).notes }

// scriptData is what the script of a page draws a chart from.
type scriptData struct {
	Title   string        `json:"title"`
	X       string        `json:"x"`
	Y       string        `json:"y"`
	LogX    bool          `json:"logX"`
	LogY    bool          `json:"logY"`
	Base2   bool          `json:"base2"` // powers of two on the X axis
	Whole   bool          `json:"whole"` // whole numbers on the X axis
	Labels  []string      `json:"labels"`
	Zero    bool          `json:"zero"`
	Smooth  bool          `json:"smooth"`
	Stacked bool          `json:"stacked"`
	Least   float64       `json:"least"`  // of the Y axis from end to end
	Shared  *scriptShared `json:"shared"` // null: the axes are its own
	Lines   []scriptLine  `json:"lines"`
	Series  []scriptCurve `json:"series"`
}

type scriptShared struct {
	X   [2]float64 `json:"x"`
	Y   [2]float64 `json:"y"`
	Bar float64    `json:"bar"`
}

type scriptLine struct {
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
	Vertical bool    `json:"vertical"`
}

type scriptCurve struct {
	Name   string     `json:"name"`
	Mark   string     `json:"mark"`
	Dashed bool       `json:"dashed"`
	Width  float64    `json:"width"`
	Light  string     `json:"light"`
	Dark   string     `json:"dark"`
	X      []float64  `json:"x"`
	Y      []*float64 `json:"y"` // null is a gap
	Spread []float64  `json:"spread"`
	Names  []string   `json:"names"` // of points; null where none has one
}

var markNames = [...]string{Line: "line", Crosses: "crosses", Rings: "rings", Dots: "dots", Joined: "joined", Bars: "bars", Dashes: "dashes"}

// JSON returns what the script of a page draws the chart from, without the characters that HTML gives a meaning.
func (c Chart) JSON() (string, error) {
	f := newFigure(c)
	whole, base2 := f.wholeX()
	d := scriptData{
		Title: c.Title, X: c.X, Y: c.Y, LogX: c.LogX, LogY: c.LogY, Base2: base2, Whole: whole,
		Labels: c.Labels, Zero: c.Zero, Smooth: c.Smooth, Stacked: c.Stacked, Least: c.leastSpan(),
		Lines: []scriptLine{}, Series: []scriptCurve{},
	}
	if c.shared != nil {
		d.Shared = &scriptShared{[2]float64{f.x.low, f.x.high}, [2]float64{f.y.low, f.y.high}, f.barWidth()}
	}
	for _, l := range f.lines {
		d.Lines = append(d.Lines, scriptLine(l))
	}
	for _, s := range f.curves {
		d.Series = append(d.Series, s.script())
	}
	b, err := json.Marshal(d)
	return string(b), err
}

func (c curve) script() scriptCurve {
	s := scriptCurve{
		Name: c.Name, Mark: markNames[c.Mark], Dashed: c.Dashed, Width: c.width, Light: c.color.Light, Dark: c.color.Dark,
		X: []float64{}, Y: []*float64{},
	}
	spreads, named := c.spreads(), slices.ContainsFunc(c.Points, func(at Point) bool { return at.Name != "" })
	for _, at := range c.Points {
		s.X = append(s.X, at.X)
		if math.IsNaN(at.Y) {
			s.Y = append(s.Y, nil)
		} else {
			s.Y = append(s.Y, &at.Y)
		}
		if spreads {
			s.Spread = append(s.Spread, at.Spread)
		}
		if named {
			s.Names = append(s.Names, at.Name)
		}
	}
	return s
}

// Table is the data of a chart: the values of all series at each X.
type Table struct {
	Columns []string
	Rows    [][]string
	Left    string // says how many rows are left out
}

// Table returns the data in at most so many rows, evenly chosen.
func (c Chart) Table(most int) Table {
	f := newFigure(c)
	t := Table{Columns: []string{f.X}}
	if f.X == "" {
		t.Columns[0] = "X"
	}
	for i, c := range f.curves {
		name := c.Name
		if name == "" {
			name = fmt.Sprintf("series %d", i+1)
		}
		t.Columns = append(t.Columns, name)
	}
	places := f.places()
	kept := min(most, len(places))
	if kept < len(places) {
		t.Left = fmt.Sprintf("%d of %d rows, evenly chosen.", kept, len(places))
	}
	values := make([]map[float64]string, len(f.curves))
	for i, c := range f.curves {
		values[i] = c.cells(f.slot)
	}
	for i := range kept {
		x := places[i*(len(places)-1)/max(1, kept-1)]
		row := []string{f.place(x)}
		for _, of := range values {
			row = append(row, of[x])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// places returns all X in order.
func (f *figure) places() (all []float64) {
	for _, c := range f.curves {
		for _, at := range c.shown() {
			all = append(all, f.slot(at.X))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// slot returns the X that a row of the table is about: that of the nearest label, where there are any.
func (f *figure) slot(x float64) float64 {
	if len(f.Labels) > 0 {
		return math.Round(x)
	}
	return x
}

// cells returns the values at each X, which slot may have moved.
func (c curve) cells(slot func(float64) float64) map[float64]string {
	all := make(map[float64]string)
	for _, at := range c.shown() {
		text := number(at.Y)
		if at.Spread > 0 {
			text += " ± " + number(at.Spread)
		}
		x := slot(at.X)
		if before := all[x]; before != "" {
			text = before + ", " + text
		}
		all[x] = text
	}
	return all
}

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
