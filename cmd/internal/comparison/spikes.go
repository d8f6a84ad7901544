package comparison

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/chart"
)

// SpikeCount sums up the spikes of one series.
type SpikeCount struct {
	Series    string
	FP32, FP8 int // of one model alone
	Shared    int // steps in which both have one
	Suspects  int // of those of FP8 alone: how many have a suspect
}

// SpikeCounts returns those of each series that has any.
func (r *Result) SpikeCounts() (counts []SpikeCount) {
	for _, series := range []string{lossSeries, normSeries} {
		c := SpikeCount{Series: series}
		for _, s := range r.Spikes {
			if s.Series == series {
				c.add(s)
			}
		}
		if c.FP32+c.FP8+c.Shared > 0 {
			counts = append(counts, c)
		}
	}
	return counts
}

func (c *SpikeCount) add(s Spike) {
	switch {
	case s.Shared && s.Model == "FP8":
		c.Shared++
	case s.Shared: // it is counted with FP8's
	case s.Model == "FP32":
		c.FP32++
	default:
		c.FP8++
		if s.Suspect != nil {
			c.Suspects++
		}
	}
}

// mostSpikes is the number of them that are listed.
const mostSpikes = 6

// LargestSpikes returns the few that are most spreads above the median, by step.
func (r *Result) LargestSpikes() []Spike {
	spikes := slices.Clone(r.Spikes)
	slices.SortStableFunc(spikes, func(a, b Spike) int { return cmp.Compare(b.rank(), a.rank()) })
	spikes = spikes[:min(len(spikes), mostSpikes)]
	slices.SortStableFunc(spikes, func(a, b Spike) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Series, b.Series))
	})
	return spikes
}

// rank is how far a spike is above the median. One that is not finite is above all.
func (s Spike) rank() float64 {
	if math.IsNaN(s.Score) {
		return math.Inf(1)
	}
	return s.Score
}

// Whose says which models have a spike.
func (r *Result) Whose(s Spike) string {
	if s.Shared {
		return "both"
	}
	return r.Called(s.Model) + " alone"
}

// Suspected names the operand that clearly lost more than before, and what it lost, or
// says that there is none.
func (s Spike) Suspected() string {
	e := s.Suspect
	switch {
	case s.Shared:
		return "none, as FP32 has it too"
	case s.Model == "FP32":
		return "none, as it is FP32's"
	case e == nil:
		return "no evidence of any"
	}
	return fmt.Sprintf("%s, %s: %d of %d values lost", e.Tensor, e.Op, e.Stats.Lost(), e.Stats.Elements)
}

// spikeCharts show the series that have spikes, with each marked.
func (r *Result) spikeCharts() (charts []chart.Chart) {
	model := r.Options.Model()
	for _, c := range r.SpikeCounts() {
		value := func(f Figures) float64 { return f.Loss }
		if c.Series == normSeries {
			value = func(f Figures) float64 { return f.GradientNorm }
		}
		charts = append(charts, chart.Chart{
			Title: "Spikes of the " + c.Series, X: "step", Y: c.Series, LogY: c.Series == normSeries,
			Series: []chart.Series{
				{Name: "FP32", Points: r.curve(func(p Point) float64 { return value(p.FP32) })},
				{Name: model, Color: fp8Model, Points: r.curve(func(p Point) float64 { return value(p.FP8) })},
				{Name: "FP32, alone", Mark: chart.Crosses, Points: r.marks(c.Series, func(s Spike) bool { return !s.Shared && s.Model == "FP32" })},
				{Name: model + ", alone", Color: fp8Model, Mark: chart.Rings, Points: r.marks(c.Series, func(s Spike) bool { return !s.Shared && s.Model == "FP8" })},
				{Name: "both, at " + model + "'s value", Color: "ink", Mark: chart.Rings, Points: r.marks(c.Series, func(s Spike) bool { return s.Shared && s.Model == "FP8" })},
			},
		})
	}
	return charts
}

// marks returns the spikes of a series that are to be shown.
func (r *Result) marks(series string, shown func(Spike) bool) (points []chart.Point) {
	for _, s := range r.Spikes {
		if s.Series == series && shown(s) {
			points = append(points, chart.Point{X: float64(s.Step), Y: s.Value, Name: fmt.Sprintf("suspect: %s", s.Suspected())})
		}
	}
	return points
}
