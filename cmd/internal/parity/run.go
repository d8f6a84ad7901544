package parity

import (
	"context"
	"fmt"
	"time"

	"github.com/octavo-fp8/octavo/cmd/internal/text"
	"github.com/octavo-fp8/octavo/cmd/internal/trial"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// Options say what is trained and how. All fields must be set but those of
// which the comment says otherwise.
type Options struct {
	Steps   int `json:"steps"`
	Batch   int `json:"batch"`
	Context int `json:"context"`

	Dim    int `json:"dim"`
	Layers int `json:"layers"`
	Heads  int `json:"heads"`
	Hidden int `json:"hidden"`

	LearningRate float64 `json:"learningRate"`
	Seed         uint64  `json:"seed"`
	Workers      int     `json:"workers"` // 0: all processors

	Profile        scaling.Profile   `json:"profile"`
	GradientFormat fp8.Format        `json:"gradientFormat"`
	Smoothing      *swiglu.Smoothing `json:"-"` // nil: plain SwiGLU

	TelemetryEvery int `json:"telemetryEvery"` // steps from one kept event to the next
}

// heldOutBatches is the number of batches on which a model is judged.
const heldOutBatches = 8

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
	Totals    []telemetry.Total // of every operand of FP8's linear layers
	Events    []telemetry.Event // of every TelemetryEvery-th step
	NonFinite *telemetry.NonFinite
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

// Run trains until the last step or until ctx is done, whichever is first, and
// returns what it has; progress is told of every step. It is an error if the
// options or the text make no sense, or if a run breaks down, and then the result
// holds the steps before.
func Run(ctx context.Context, o Options, text text.Text, progress func(Point)) (*Result, error) {
	r, err := newRunner(o, text)
	if err != nil {
		return nil, err
	}
	for step := 0; step < o.Steps && ctx.Err() == nil; step++ {
		p, err := r.step(step)
		if err != nil {
			return r.finish(), fmt.Errorf("step %d: %w", step, err)
		}
		r.result.Points = append(r.result.Points, p)
		progress(p)
	}
	return r.finish(), nil
}

// runner holds both runs.
type runner struct {
	result    *Result
	schedule  train.Schedule
	corpus    *train.Corpus
	fp32, fp8 *trial.Run
	recorder  *telemetry.Recorder
}

func newRunner(o Options, text text.Text) (*runner, error) {
	r := &runner{
		result:   &Result{Options: o, Text: text},
		schedule: train.Schedule{Peak: o.LearningRate, Final: 0.1, Warmup: max(o.Steps/10, 1), Steps: o.Steps},
	}
	var err error
	heldOut := heldOutBatches*o.Batch*o.Context + 1
	if r.corpus, err = train.NewCorpus(text.Data, heldOut, o.Seed); err != nil {
		return nil, fmt.Errorf("%s has %d bytes, which is too short for %d held-out batches of %d x %d: name a longer one with --text, or lower --batch or --context",
			text.Source, text.Bytes, heldOutBatches, o.Batch, o.Context)
	}
	cfg := train.Config{
		Vocab: 256, Dim: o.Dim, Layers: o.Layers, Heads: o.Heads, Hidden: o.Hidden, Context: o.Context, Workers: o.Workers,
	}
	if r.fp32, err = trial.New("FP32", cfg, o.Seed); err != nil {
		return nil, err
	}
	recipes := train.ProfileFP8(o.Profile, o.GradientFormat)
	cfg.FP8, cfg.Smoothing = &recipes, o.Smoothing
	if r.fp8, err = trial.New("FP8", cfg, o.Seed); err != nil {
		return nil, err
	}
	r.recorder = telemetry.New(keepEvery{r.result})
	r.fp8.Model.Listen(r.recorder)
	r.result.Params = r.fp8.Params()
	return r, nil
}

// keepEvery is a sink that keeps the events of every TelemetryEvery-th step.
type keepEvery struct{ result *Result }

func (k keepEvery) Event(e telemetry.Event) error {
	if every := k.result.Options.TelemetryEvery; every > 0 && e.Step%int64(every) == 0 {
		k.result.Events = append(k.result.Events, e)
	}
	return nil
}

// step trains both models on the batch of a step.
func (r *runner) step(step int) (Point, error) {
	o := r.result.Options
	tokens, targets, err := r.corpus.Batch(step, o.Batch, o.Context)
	if err != nil {
		return Point{}, err
	}
	p := Point{Step: step, LearningRate: r.schedule.At(step)}
	if p.FP32.Figures, err = r.fp32.Step(tokens, targets, o.Batch, o.Context, p.LearningRate); err != nil {
		return p, err
	}
	if p.FP8.Figures, err = r.fp8.Step(tokens, targets, o.Batch, o.Context, p.LearningRate); err != nil {
		return p, err
	}
	if err := r.recorder.Step(int64(step) + 1); err != nil {
		return p, err
	}
	if judged := max(o.Steps/8, 1); (step+1)%judged == 0 || step+1 == o.Steps {
		if err := r.judge(&p); err != nil {
			return p, err
		}
	}
	return p, nil
}

// judge fills in the losses on the held-out batches.
func (r *runner) judge(p *Point) (err error) {
	if p.FP32.HeldOut, err = r.heldOut(r.fp32); err != nil {
		return err
	}
	p.FP8.HeldOut, err = r.heldOut(r.fp8)
	return err
}

func (r *runner) heldOut(run *trial.Run) (float64, error) {
	o := r.result.Options
	return run.HeldOut(r.corpus, heldOutBatches, o.Batch, o.Context)
}

// finish sums up what there is. A run that was stopped between judgements is
// judged once more.
func (r *runner) finish() *Result {
	points := r.result.Points
	if n := len(points); n > 0 && points[n-1].FP32.HeldOut == 0 {
		// Without a held-out loss the result is still worth having.
		_ = r.judge(&points[n-1])
	}
	r.result.FP32 = outcome(points, r.fp32.Time, func(p Point) Figures { return p.FP32 })
	r.result.FP8 = outcome(points, r.fp8.Time, func(p Point) Figures { return p.FP8 })
	r.result.Totals = r.recorder.Totals()
	if first, bad := r.recorder.FirstNonFinite(); bad {
		r.result.NonFinite = &first
	}
	return r.result
}

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
