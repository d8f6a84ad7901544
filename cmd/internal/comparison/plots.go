package comparison

import "github.com/octavo-fp8/octavo/lab/chart"

// curve returns a figure over the steps.
func (r *Result) curve(value func(Point) float64) []chart.Point {
	var xy []chart.Point
	for _, p := range r.Points {
		xy = append(xy, chart.Point{X: float64(p.Step), Y: value(p)})
	}
	return xy
}

// heldOut returns the held-out losses where there are any.
func (r *Result) heldOut(figures func(Point) Figures) (judged []chart.Point) {
	for _, p := range r.Points {
		if loss := figures(p).HeldOut; loss != 0 {
			judged = append(judged, chart.Point{X: float64(p.Step), Y: loss})
		}
	}
	return judged
}

// LossChart shows the losses of both models.
func (r *Result) LossChart() chart.Chart {
	model := r.Options.Model()
	return chart.Chart{Title: "Loss", X: "step", Y: "nats per byte", Smooth: true, Series: []chart.Series{
		{Name: "FP32", Points: r.curve(func(p Point) float64 { return p.FP32.Loss })},
		{Name: model, Color: fp8Model, Points: r.curve(func(p Point) float64 { return p.FP8.Loss })},
		{Name: "FP32, held out", Points: r.heldOut(func(p Point) Figures { return p.FP32 }), Mark: chart.Crosses},
		{Name: model + ", held out", Color: fp8Model, Points: r.heldOut(func(p Point) Figures { return p.FP8 }), Mark: chart.Rings},
	}}
}

func (r *Result) gapChart() chart.Chart {
	return chart.Chart{Title: r.Options.Model() + "'s loss above FP32's, same batch", X: "step", Y: "percent", Zero: true, Smooth: true, Series: []chart.Series{
		{Name: "gap", Color: fp8Model, Points: r.curve(func(p Point) float64 { return Gap(p.FP32.Loss, p.FP8.Loss) })},
	}}
}

func (r *Result) normChart() chart.Chart {
	return chart.Chart{Title: "Norm of the gradient, before clipping", X: "step", Y: "norm", LogY: true, Smooth: true, Series: []chart.Series{
		{Name: "FP32", Points: r.curve(func(p Point) float64 { return p.FP32.GradientNorm })},
		{Name: r.Options.Model(), Color: fp8Model, Points: r.curve(func(p Point) float64 { return p.FP8.GradientNorm })},
	}}
}
