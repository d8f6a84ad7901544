package comparison

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/internal/text"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// heldOutBatches is the number of batches on which a model is judged.
const heldOutBatches = 8

// Run trains until the last step or until ctx is done, whichever is first, and
// returns what it has; progress is told of every step. A run that resumes has the
// points and telemetry of the steps before it as well. It is an error if the
// options or the text make no sense or are not those of the checkpoint, and then
// there is no result; or if a run breaks down or a checkpoint cannot be written, and
// then the result holds the steps before.
func Run(ctx context.Context, o Options, text text.Text, c Checkpoints, progress func(Point)) (*Result, error) {
	r, err := newRunner(o, text)
	if err != nil {
		return nil, err
	}
	if r.fp8.flight != nil {
		r.fp8.flight.checkpoints = c.Every
	}
	whole := context.WithoutCancel(ctx) // what has begun is finished
	if err := c.begin(whole, r); err != nil {
		return nil, err
	}
	err = r.train(ctx, whole, c, progress)
	if e := r.saver.Close(); err == nil {
		err = e
	} else if e != nil {
		err = inOneLine([]error{err, e})
	}
	return r.finish(whole), err
}

// train does the steps until the last or until ctx is done, and writes checkpoints. What
// has begun goes on with the context whole.
func (r *runner) train(ctx, whole context.Context, c Checkpoints, progress func(Point)) error {
	stopped := ctx.Err() != nil
	for step := len(r.result.Points); step < r.result.Options.Steps && !stopped; step++ {
		p, err := r.step(whole, step)
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		r.result.Points = append(r.result.Points, p)
		progress(p)
		if show := r.result.Options.Show; show != nil {
			show(r.soFar)
		}
		stopped = ctx.Err() != nil
		if err := c.step(whole, r, stopped); err != nil {
			return err
		}
		if err := r.stoppedByRule(whole); err != nil {
			return err
		}
		if err := r.landIfBad(whole, p); err != nil {
			return err
		}
		if stopped && step+1 < r.result.Options.Steps {
			return r.land(whole, step, "it was asked to", train.Alarm{})
		}
	}
	return nil
}

// runner holds both runs.
type runner struct {
	result    *Result
	schedule  optim.Schedule
	corpus    *train.Corpus
	fp32, fp8 *side
	totals    telemetry.Recorder // of all steps
	saver     train.Saver
	copied    copied   // what is being saved
	kept      []string // checkpoints of this run, the newest last; the saver's while it writes
}

func newRunner(o Options, text text.Text) (*runner, error) {
	o = o.Complete()
	r := &runner{result: &Result{Options: o, Text: text}, schedule: o.schedule()}
	var err error
	heldOut := heldOutBatches*o.Batch*o.Context + 1
	if r.corpus, err = train.NewCorpus(text.Data, heldOut, o.Seed); err != nil {
		return nil, fmt.Errorf("%s has %d bytes, which is too short for %d held-out batches of %d x %d: name a longer one with --text, or lower --batch or --context",
			text.Source, text.Bytes, heldOutBatches, o.Batch, o.Context)
	}
	fp32, fp8 := o.models()
	if err := r.result.fit(fp32Model, &fp32); err != nil {
		return nil, err
	}
	if err := r.result.fit(fp8Model, &fp8); err != nil {
		return nil, err
	}
	if r.fp32, err = newSide("FP32", fp32, optim.MomentsFP32, o.Seed); err != nil {
		return nil, err
	}
	if r.fp8, err = newSide("FP8", fp8, o.Moments, o.Seed); err != nil {
		return nil, err
	}
	r.fp8.suspects = new(train.Suspects)
	r.result.health = newHealth(fp8)
	r.fp8.sinks = []telemetry.Sink{keepEvery{r.result}, r.fp8.suspects, &r.totals, r.result.health}
	if len(o.Rules) > 0 || o.Land {
		r.fp8.flight = newFlight(o.Rules, o.Land)
		r.fp8.flight.first = r.fp8.Model
		r.fp8.sinks = append(r.fp8.sinks, &r.fp8.flight.watch)
	}
	if o.Land {
		r.fp8.sinks = append(r.fp8.sinks, &r.fp8.flight.recent)
	}
	r.result.Params = r.fp8.Params()
	r.result.ModelFP32, r.result.ModelFP8 = r.fp32.Model, r.fp8.Model
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
func (r *runner) step(ctx context.Context, step int) (Point, error) {
	o := r.result.Options
	tokens, targets, err := r.corpus.Batch(step, o.Batch, o.Context)
	if err != nil {
		return Point{}, err
	}
	p := Point{Step: step, LearningRate: r.schedule.At(step)}
	before := len(r.result.Spikes)
	if p.FP32, err = r.fp32.train(ctx, r.result, step, tokens, targets, p.LearningRate); err != nil {
		return p, err
	}
	if p.FP8, err = r.fp8.train(ctx, r.result, step, tokens, targets, p.LearningRate); err != nil {
		return p, err
	}
	markShared(r.result.Spikes[before:])
	if err := r.act(ctx, step); err != nil {
		return p, err
	}
	if judged := max(o.Steps/8, 1); (step+1)%judged == 0 || step+1 == o.Steps {
		if err := r.judge(ctx, &p); err != nil {
			return p, err
		}
	}
	return p, nil
}

// judge fills in the losses on the held-out batches.
func (r *runner) judge(ctx context.Context, p *Point) (err error) {
	if p.FP32.HeldOut, err = r.heldOut(ctx, r.fp32); err != nil {
		return err
	}
	p.FP8.HeldOut, err = r.heldOut(ctx, r.fp8)
	return err
}

func (r *runner) heldOut(ctx context.Context, s *side) (float64, error) {
	o := r.result.Options
	return s.HeldOut(ctx, r.corpus, heldOutBatches, o.Batch, o.Context)
}

// finish sums up what there is. A run that was stopped between judgements is
// judged once more.
func (r *runner) finish(ctx context.Context) *Result {
	points := r.result.Points
	if n := len(points); n > 0 && points[n-1].FP32.HeldOut == 0 {
		// Without a held-out loss the result is still worth having.
		_ = r.judge(ctx, &points[n-1])
	}
	r.sumUp(r.result)
	return r.result
}

// soFar returns what there is after the last step, to be read before the next.
func (r *runner) soFar() *Result {
	result := *r.result
	r.sumUp(&result)
	return &result
}

// sumUp fills in what follows from the steps.
func (r *runner) sumUp(result *Result) {
	result.FP32 = outcome(result.Points, r.fp32.Time, func(p Point) Figures { return p.FP32 })
	result.FP8 = outcome(result.Points, r.fp8.Time, func(p Point) Figures { return p.FP8 })
	result.FP32.Steps, result.FP8.Steps = r.fp32.Optimizer.Steps(), r.fp8.Optimizer.Steps()
	result.Totals = r.summaries()
	result.LoadsFP32, result.LoadsFP8 = r.fp32.loads, r.fp8.loads
}

// summaries returns what happened to each operand in all steps.
func (r *runner) summaries() (all []telemetry.Summary) {
	for _, t := range r.totals.Totals() {
		all = append(all, t.Summary)
	}
	return all
}
