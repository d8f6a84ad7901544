package runs

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/lab/chart"
)

// mostUnder is the number of FP32 curves that lie under the others at most. More would
// hide them, and have a chart of their own.
const mostUnder = 4

// charts returns the curves of all runs of train over each other: first what they are compared for.
func (s *Set) charts() []chart.Chart {
	if len(s.Train) == 0 {
		return nil
	}
	fp8 := lossChart("Loss in " + s.in())
	gap := chart.Chart{Title: s.gapTitle(), X: "step", Y: "percent", Zero: true, Smooth: true}
	for i, t := range s.Train {
		fp8.Series = append(fp8.Series, look(i, chart.Series{Name: s.fp8Name(t), Points: points(t.Curves.FP8)}))
		gap.Series = append(gap.Series, look(i, chart.Series{Name: t.Name, Points: points(t.Curves.Gap)}))
	}
	fp32 := s.fp32Chart()
	if len(fp32.Series) > mostUnder {
		return []chart.Chart{gap, fp8, fp32}
	}
	both := lossChart("Loss")
	both.Series = append(fp32.Series, fp8.Series...)
	return []chart.Chart{gap, both}
}

func (s *Set) gapTitle() string {
	if in := s.MultipliesIn(); in != narrow {
		return in + "'s loss above FP32's, same batch"
	}
	return "Loss above FP32's, same batch"
}

func lossChart(title string) chart.Chart {
	return chart.Chart{Title: title, X: "step", Y: "nats per byte", Smooth: true}
}

// fp32Chart has each FP32 curve once: in FP32's colour if there are few, otherwise in that
// of the first run that has it.
func (s *Set) fp32Chart() chart.Chart {
	c := lossChart("Loss in FP32")
	baselines := s.Baselines()
	for i, b := range baselines {
		series := chart.Series{Name: b.name(len(s.Train)), Color: fp32Color, Dashed: i%2 == 1, Points: points(b.Curves.FP32)}
		if len(baselines) > mostUnder {
			first := slices.IndexFunc(s.Train, func(t Train) bool { return t.Name == b.Of[0] })
			series = look(first, series)
			series.Name = strings.TrimPrefix(series.Name, "FP32 of ") // as the title says
		}
		c.Series = append(c.Series, series)
	}
	return c
}

func (s *Set) fp8Name(t Train) string {
	if len(s.Train) == 1 {
		return s.MultipliesIn()
	}
	return t.Name
}

// name is what the curve of a baseline is called beside so many runs.
func (b Baseline) name(runs int) string {
	switch {
	case len(b.Of) == runs:
		return "FP32"
	case len(b.Of) == 1:
		return "FP32 of " + b.Of[0]
	}
	return fmt.Sprintf("FP32 of %s and %d more", b.Of[0], len(b.Of)-1)
}

// fp32Color is the colour that FP32 has in all charts.
const fp32Color chart.Key = "blue"

// palette is the colours of runs.
var palette = []chart.Key{"vermilion", "green", "pink", "ochre", "violet", "ink", "grey"}

// look gives the curve of the i-th run its colour, the same in all charts. When all are
// in use they come again dashed.
func look(i int, s chart.Series) chart.Series {
	s.Color, s.Dashed = palette[i%len(palette)], i/len(palette)%2 == 1
	return s
}

// mostPoints is the number of points of a curve at most.
const mostPoints = 2000

// window returns of how many steps the least and the largest value are shown.
func window(steps int) int {
	if steps <= mostPoints {
		return 1
	}
	return (2*steps + mostPoints - 1) / mostPoints
}

// points returns a curve over the steps. Of a long one it has the least and the largest
// value of each window, in their order, so that no spike is lost.
func points(values []float64) (curve []chart.Point) {
	n := window(len(values))
	for begin := 0; begin < len(values); begin += n {
		for _, i := range extremes(values, begin, min(begin+n, len(values))) {
			curve = append(curve, chart.Point{X: float64(i), Y: values[i]})
		}
	}
	return curve
}

// extremes returns where in values[begin:end] the least and the largest are, and the first
// that is no number, in their order.
func extremes(values []float64, begin, end int) (at []int) {
	least, largest, none := begin, begin, -1
	for i := begin; i < end; i++ {
		switch x := values[i]; {
		case math.IsNaN(x) || math.IsInf(x, 0):
			if none < 0 {
				none = i
			}
		case x < values[least] || !finite(values[least]):
			least = i
		}
		if x := values[i]; finite(x) && (x > values[largest] || !finite(values[largest])) {
			largest = i
		}
	}
	for i := begin; i < end; i++ {
		if i == least || i == largest || i == none {
			at = append(at, i)
		}
	}
	return at
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// thinned says that not all points are shown, or nothing if all are.
func (s *Set) thinned() string {
	longest := 0
	for _, t := range s.Train {
		longest = max(longest, t.Done)
	}
	if n := window(longest); n > 1 {
		return fmt.Sprintf("Of long runs the curves show the least and the largest value of every %d steps or fewer.", n)
	}
	return ""
}
