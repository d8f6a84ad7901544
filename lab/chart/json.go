package chart

import (
	"encoding/json"
	"math"
	"slices"
)

// scriptData is what the script of a page draws a chart from.
type scriptData struct {
	Title  string        `json:"title"`
	X      string        `json:"x"`
	Y      string        `json:"y"`
	LogX   bool          `json:"logX"`
	LogY   bool          `json:"logY"`
	Base2  bool          `json:"base2"` // powers of two on the X axis
	Whole  bool          `json:"whole"` // whole numbers on the X axis
	Labels []string      `json:"labels"`
	Zero   bool          `json:"zero"`
	Smooth bool          `json:"smooth"`
	Lines  []scriptLine  `json:"lines"`
	Series []scriptCurve `json:"series"`
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

var markNames = [...]string{Line: "line", Crosses: "crosses", Rings: "rings", Dots: "dots", Joined: "joined", Bars: "bars"}

// JSON returns what the script of a page draws the chart from, without the characters that HTML gives a meaning.
func (c Chart) JSON() (string, error) {
	f := newFigure(c)
	whole, base2 := f.wholeX()
	d := scriptData{
		Title: c.Title, X: c.X, Y: c.Y, LogX: c.LogX, LogY: c.LogY, Base2: base2, Whole: whole,
		Labels: c.Labels, Zero: c.Zero, Smooth: c.Smooth, Lines: []scriptLine{}, Series: []scriptCurve{},
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
