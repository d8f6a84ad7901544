package page

import (
	"math"

	"github.com/octavo-fp8/octavo/lab/chart"
)

// noise returns numbers from -1 to 1 that are the same in every run.
func noise() func() float64 {
	state := uint64(1)
	return func() float64 {
		state = state*6364136223846793005 + 1442695040888963407
		return float64(state>>11)/(1<<52) - 1
	}
}

func overSteps(n, every int, value func(step float64) float64) (points []chart.Point) {
	for i := 0; i < n; i += every {
		points = append(points, chart.Point{X: float64(i), Y: value(float64(i))})
	}
	return points
}

// stackedBars has bars of 1 + 2 and of 3 + 4.
func stackedBars() chart.Chart {
	return chart.Chart{
		Title: "Stacked", Y: "GiB", Stacked: true, Labels: []string{"0", "1"}, Lines: []chart.Reference{{Name: "card", Value: 8}},
		Series: []chart.Series{
			{Name: "weights", Mark: chart.Bars, Points: []chart.Point{{X: 0, Y: 1}, {X: 1, Y: 3}}},
			{Name: "activations", Mark: chart.Bars, Points: []chart.Point{{X: 0, Y: 2}, {X: 1, Y: 4}}},
		},
	}
}

// atlas is charts of all kinds.
func atlas() []chart.Chart {
	random := noise()
	loss := func(shift float64) func(float64) float64 {
		return func(step float64) float64 { return 2.4 + 3*math.Exp(-step/40) + shift + 0.1*random() }
	}
	fp32 := overSteps(300, 1, loss(0))
	fp8 := append([]chart.Point(nil), fp32...)
	for i := range fp8 {
		fp8[i].Y += 0.004 * random()
	}
	fp8[120].Y = math.NaN()
	names := []string{"accumulate", "round to nearest even", "stochastic rounding", "per tensor", "per row", "blocks of 128", "blocks of 32", "delayed", "two-level", "as it is"}
	many := chart.Chart{Title: "More series than colours", X: "step", Y: "dB"}
	for k, name := range names {
		many.Series = append(many.Series, chart.Series{Name: name, Points: overSteps(60, 1, func(step float64) float64 { return 3*float64(k) + math.Sin(step/7+float64(k)) })})
	}
	labels := []string{"embed input", "attention q input", "attention output weight", "mlp gate gradient", "mlp down input", "head gradient"}
	byLabel := func(shift, spread float64) (points []chart.Point) {
		for i := range labels {
			points = append(points, chart.Point{X: float64(i), Y: 20 + shift + 4*random(), Spread: spread})
		}
		return points
	}
	powers := func(f func(k float64) float64) (points []chart.Point) {
		for k := 256.0; k <= 65536; k *= 2 {
			points = append(points, chart.Point{X: k, Y: f(k)})
		}
		return points
	}
	histogram := chart.Series{Name: "elements", Mark: chart.Bars}
	for e := -14.0; e <= 8; e++ {
		histogram.Points = append(histogram.Points, chart.Point{X: e, Y: 1e5 * math.Exp(-(e+4)*(e+4)/12)})
	}
	return []chart.Chart{
		{
			Title: "Loss", X: "step", Y: "nats per byte", Smooth: true, Description: "The loss of both models on the same batches.",
			Series: []chart.Series{
				{Name: "FP32", Points: fp32},
				{Name: "FP8", Points: fp8},
				{Name: "FP32, held out", Points: overSteps(300, 50, loss(0.1)), Mark: chart.Crosses},
				{Name: "FP8, held out", Points: overSteps(300, 50, loss(0.12)), Mark: chart.Rings},
			},
			Lines: []chart.Reference{{Name: "warm-up ends", Value: 30, Vertical: true}},
		},
		{
			Title: "FP8's loss above FP32's", X: "step", Y: "percent", Zero: true, Smooth: true,
			Series: []chart.Series{{Name: "gap", Color: "FP8", Points: overSteps(300, 1, func(float64) float64 { return 0.1 + 1.6*random() })}},
			Lines:  []chart.Reference{{Name: "goal: 0.25 %", Value: 0.25}},
		},
		{Title: "Accumulation error with a title that is long enough to need a second line on the screen of a phone", X: "K", Y: "percent", LogX: true, LogY: true, Series: []chart.Series{
			{Name: "FP32", Mark: chart.Joined, Points: powers(func(k float64) float64 { return 1e-6 * math.Sqrt(k) })},
			{Name: "14 bits", Mark: chart.Joined, Points: powers(func(k float64) float64 { return 1e-3 * k / 256 })},
			{Name: "promoted every 128", Mark: chart.Joined, Dashed: true, Points: powers(func(k float64) float64 { return 2e-3 * math.Pow(k/256, 0.2) })},
		}},
		{Title: "SQNR by operand", Y: "dB", Labels: labels, Series: []chart.Series{
			{Name: "just in time", Mark: chart.Dots, Points: byLabel(0, 0)},
			{Name: "delayed", Mark: chart.Rings, Points: byLabel(-3, 1.5)},
			{Name: "per block", Mark: chart.Crosses, Points: byLabel(4, 0)},
		}},
		{Title: "Exponents of the weights", X: "log2 of the magnitude", Y: "elements", Series: []chart.Series{histogram},
			Lines: []chart.Reference{{Name: "smallest normal", Value: -6, Vertical: true}, {Name: "smallest subnormal", Value: -9, Vertical: true}, {Name: "largest", Value: 8, Vertical: true}}},
		stackedBars(),
		{Title: "Amax", X: "step", Y: "amax", LogY: true, Series: []chart.Series{
			{Name: "input", Points: overSteps(500, 1, func(s float64) float64 { return 3 * math.Exp(0.2*random()) })},
			{Name: "weight", Points: overSteps(500, 1, func(s float64) float64 { return 0.4 + s/2000 })},
			{Name: "gradient", Points: overSteps(500, 1, func(s float64) float64 {
				if int(s)%100 < 3 {
					return 0
				}
				return 1e-5 * math.Exp(3*random()-s/200)
			})},
		}, Lines: []chart.Reference{{Name: "largest of E4M3", Value: 448}}},
		{Title: "Throughput", X: "FLOP per byte", Y: "GFLOP/s", LogX: true, LogY: true, Series: []chart.Series{
			{Name: "octavo", Mark: chart.Dots, Points: []chart.Point{{X: 3.1, Y: 120, Name: "small: 64x64x64"}, {X: 30, Y: 900, Name: "square: 1024"}, {X: 30, Y: 500, Name: "decode: 1x4096x4096"}}},
			{Name: "roof", Points: []chart.Point{{X: 1, Y: 40}, {X: 50, Y: 2000}, {X: 200, Y: 2000}}, Dashed: true},
		}},
		many,
		{Title: "Nothing to show", Series: []chart.Series{{Name: "empty"}, {Name: "not finite", Points: []chart.Point{{X: 1, Y: math.NaN()}}}}},
		{Title: "One point", Series: []chart.Series{{Points: []chart.Point{{X: 3, Y: 1e-7}}}}},
	}
}
