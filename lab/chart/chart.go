// Package chart describes charts once and draws them twice: as a static picture (SVG and PNG), and as the data from
// which the script of a page draws one that can be zoomed and asked for values. Both show the same points in the same
// colours, and say how many points they cannot show.
package chart

// Chart is a plot of some series over common axes.
type Chart struct {
	Title, X, Y string
	LogX, LogY  bool // a logarithmic axis, on which only positive values can be shown

	// Description says what the chart shows, for who cannot see it. Without one, it is made from the series.
	Description string

	// Labels, where there are any, stand at X = 0, 1, ... instead of numbers.
	Labels []string

	Zero   bool        // the Y axis includes 0, at which there is a line
	Smooth bool        // a page offers to smooth the lines
	Lines  []Reference // lines that are no data

	Series []Series
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
)

func (m Mark) joins() bool { return m == Line || m == Joined }
