package comparison

import (
	"html/template"
	"math"
	"sort"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/telemetry"
)

// curve returns a figure over the steps.
func (r *Result) curve(value func(Point) float64) []chart.Point {
	var xy []chart.Point
	for _, p := range r.Points {
		xy = append(xy, chart.Point{X: float64(p.Step), Y: value(p)})
	}
	return xy
}

// heldOut returns the held-out losses where there are any.
func (r *Result) heldOut(figures func(Point) Figures) []chart.Point {
	return r.curve(func(p Point) float64 {
		if loss := figures(p).HeldOut; loss != 0 {
			return loss
		}
		return math.NaN()
	})
}

func (r *Result) lossChart() (template.HTML, error) {
	fp32, fp8 := func(p Point) Figures { return p.FP32 }, func(p Point) Figures { return p.FP8 }
	return chart.Chart{Title: "Loss", X: "step", Y: "nats per byte", Series: []chart.Series{
		{Name: "FP32", Points: r.curve(func(p Point) float64 { return p.FP32.Loss })},
		{Name: "FP8", Points: r.curve(func(p Point) float64 { return p.FP8.Loss })},
		{Name: "FP32, held out", Points: r.heldOut(fp32), Mark: chart.Crosses},
		{Name: "FP8, held out", Points: r.heldOut(fp8), Mark: chart.Rings},
	}}.SVG()
}

func (r *Result) gapChart() (template.HTML, error) {
	return chart.Chart{Title: "FP8's loss above FP32's, same batch", X: "step", Y: "percent", Series: []chart.Series{
		{Name: "gap", Points: r.curve(func(p Point) float64 { return Gap(p.FP32.Loss, p.FP8.Loss) })},
	}}.SVG()
}

func (r *Result) amaxChart() (template.HTML, error) {
	return chart.Chart{Title: "Largest magnitude in any layer", X: "step", Y: "log2 amax", Series: r.overSteps(func(e *telemetry.Event) float64 {
		return math.Log2(e.Stats.Amax)
	})}.SVG()
}

func (r *Result) underflowChart() (template.HTML, error) {
	return chart.Chart{Title: "Values that became zero, worst layer", X: "step", Y: "percent", Series: r.overSteps(func(e *telemetry.Event) float64 {
		return 100 * e.FlushedShare()
	})}.SVG()
}

// overSteps returns, for each kind of operand, the largest value of any layer in
// each step of which events were kept.
func (r *Result) overSteps(value func(*telemetry.Event) float64) (lines []chart.Series) {
	for _, role := range []string{"input", "weight", "gradient"} {
		largest := make(map[int64]float64)
		for i := range r.Events {
			e := &r.Events[i]
			v := value(e)
			if roleOf(e.Tensor) != role || v != v || math.IsInf(v, 0) {
				continue
			}
			if old, ok := largest[e.Step]; !ok || v > old {
				largest[e.Step] = v
			}
		}
		lines = append(lines, chart.Series{Name: role, Points: sorted(largest)})
	}
	return lines
}

func sorted(values map[int64]float64) []chart.Point {
	xy := make([]chart.Point, 0, len(values))
	for step, v := range values {
		xy = append(xy, chart.Point{X: float64(step), Y: v})
	}
	sort.Slice(xy, func(i, j int) bool { return xy[i].X < xy[j].X })
	return xy
}
