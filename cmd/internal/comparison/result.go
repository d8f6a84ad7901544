package comparison

import (
	"time"

	"github.com/octavo-fp8/octavo/cmd/internal/text"
	"github.com/octavo-fp8/octavo/cmd/internal/trial"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Point is one step of both runs.
type Point struct {
	Step         int
	LearningRate float64
	FP32, FP8    Figures
}

// Figures are a run's at one step.
type Figures struct {
	trial.Figures
	HeldOut float64 // loss on the held-out batches after the step; 0 where not judged
}

// Result is what there is after the last step.
type Result struct {
	Options Options
	Text    text.Text
	Points  []Point
	Params  int // trained values

	FP32, FP8 Outcome
	Totals    []telemetry.Summary // of every operand of FP8's linear layers
	Events    []telemetry.Event   // of every TelemetryEvery-th step
	NonFinite *telemetry.NonFinite
	Skips     []Skip  // of both runs, by step
	Spikes    []Spike // of both runs, by step
}

// Outcome is where a run ends.
type Outcome struct {
	Loss    float64       // mean training loss of the last tenth of the steps
	HeldOut float64       // loss on the held-out batches; 0 if never judged
	Time    time.Duration // spent in its steps
}

// BecameNonFinite returns how many finite values became NaN or infinite in FP8.
func (r *Result) BecameNonFinite() (n int64) {
	for _, t := range r.Totals {
		n += t.Stats.BecameNonFinite
	}
	return n
}

// Gap returns by how many percent b is above a.
func Gap(a, b float64) float64 { return 100 * (b/a - 1) }

func outcome(points []Point, time time.Duration, figures func(Point) Figures) Outcome {
	o := Outcome{Time: time}
	last := points[len(points)-(len(points)+9)/10:]
	for _, p := range last {
		o.Loss += figures(p).Loss / float64(len(last))
	}
	if len(points) > 0 {
		o.HeldOut = figures(points[len(points)-1]).HeldOut
	}
	return o
}
