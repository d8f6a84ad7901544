package comparison

import (
	"fmt"
	"time"

	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/nn"
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

	Activations []Activations // of both models, where there is a budget

	Extensions []Extension // of the number of steps, in order

	FP32, FP8           Outcome
	ModelFP32, ModelFP8 *nn.Llama           // as the last step has left them
	Totals              []telemetry.Summary // of every operand of FP8's linear layers
	Events              []telemetry.Event   // of every TelemetryEvery-th step
	LoadsFP32, LoadsFP8 []Load              // of the layers with experts, in their order
	NonFinite           *telemetry.NonFinite
	Skips               []Skip  // of both runs, by step
	Spikes              []Spike // of both runs, by step
	Alarms              []Alarm // of rules, by step

	health *health // of the FP8 model in all steps

	Landing *Landing // nil: the run ended as it was to, or was not to land

	Live page.Live // of a run that goes on
}

// Extension is that of a run to more steps, when it was resumed. Points before stay as
// they were; from there on the learning rate and the steps after which models are judged
// are those of a run of the new number of steps.
type Extension struct {
	After int `json:"after"` // steps that were done
	From  int `json:"from"`  // steps asked for until then
	To    int `json:"to"`    // steps asked for from then on
}

func (e Extension) String() string {
	return fmt.Sprintf("Extended after step %d from %d to %d steps: the learning rate from there on is that of %d steps.", e.After, e.From, e.To, e.To)
}

// Outcome is where a run ends.
type Outcome struct {
	Loss    float64       // mean training loss of the last tenth of the steps
	HeldOut float64       // loss on the held-out batches; 0 if never judged
	Time    time.Duration // spent in its steps
	Steps   int64         // that the model took, which one that is skipped or undone is not
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
