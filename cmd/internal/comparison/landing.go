package comparison

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/landing"
	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// Landing is what a run leaves that did not end as it was to.
type Landing struct {
	Step     int // in which it stopped
	Cause    string
	Recorder landing.Recorder
	Events   []telemetry.Event // of the last steps
}

// landedSteps is the number of the last steps whose telemetry is kept.
const landedSteps = 10

// recent is a sink that keeps the events of the last steps.
type recent struct{ events []telemetry.Event }

func (r *recent) Event(e telemetry.Event) error {
	old := slices.IndexFunc(r.events, func(old telemetry.Event) bool { return old.Step > e.Step-landedSteps })
	if old != 0 {
		r.events = r.events[:copy(r.events, r.events[max(old, 0):])]
	}
	if old < 0 {
		r.events = r.events[:0]
	}
	r.events = append(r.events, e)
	return nil
}

// landIfBad ends a run that is to land when the FP8 model's loss or gradient is not finite.
func (r *runner) landIfBad(ctx context.Context, p Point) error {
	if !r.result.Options.Land {
		return nil
	}
	what := ""
	for name, v := range map[string]float64{normSeries: p.FP8.GradientNorm, lossSeries: p.FP8.Loss} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			what = max(what, name) // the loss comes first
		}
	}
	if what == "" {
		return nil
	}
	cause := fmt.Sprintf("step %d: the %s of %s is not finite", p.Step, what, r.result.Options.Model())
	if err := r.land(ctx, p.Step, cause, train.Alarm{}); err != nil {
		return err
	}
	return fmt.Errorf("%s: the run stopped", cause)
}

// land does the last step again, to the bit, and keeps the operator that it was about: the
// first with a value that is not finite, or that of an alarm.
func (r *runner) land(ctx context.Context, step int, cause string, a train.Alarm) error {
	if !r.result.Options.Land {
		return nil
	}
	l := &Landing{Step: step, Cause: cause, Events: r.fp8.flight.recent.events}
	l.Recorder.Tensor, l.Recorder.Op = a.Tensor, a.Op
	if !slices.Contains([]string{"forward", "input-gradient", "weight-gradient"}, a.Op) {
		l.Recorder.Tensor = "" // it is no operand of a product
	}
	loss, err := r.redo(ctx, int64(step), &l.Recorder)
	if err != nil {
		return err
	}
	if want := r.result.Points[step].FP8.Loss; math.Float64bits(loss) != math.Float64bits(want) &&
		!(math.IsNaN(loss) && math.IsNaN(want)) {
		l.Cause += fmt.Sprintf("; done again, the step has a loss of %v and not %v: "+
			"what went wrong was not computed, such as a flipped bit in memory", loss, want)
	}
	r.result.Landing = l
	return nil
}

// redo computes the gradients of a step again, of the model as it was before, for a recorder,
// and then leaves the model as it was after the step.
func (r *runner) redo(ctx context.Context, step int64, recorder *landing.Recorder) (loss float64, err error) {
	s, o, f := r.fp8, r.result.Options, r.fp8.flight
	undone := f.undone
	if undone[step] { // it was gone back over in the end, and is done here as it was before that
		f.undone = maps.Clone(undone)
		maps.DeleteFunc(f.undone, func(n int64, _ bool) bool { return n >= f.back })
	}
	err = r.before(ctx, step)
	f.undone = undone
	if err != nil {
		return 0, err
	}
	tokens, targets, err := r.corpus.Batch(int(step), o.Batch, o.Context)
	if err != nil {
		return 0, err
	}
	s.Model.Listen(nil)
	shared := s.Model.Shared()
	shared.Tap, shared.ProductTap = recorder.Tap, recorder.Product
	s.Hold = func(f trial.Figures) (bool, error) { loss = f.Loss; return true, nil }
	_, _, err = s.StepOrSkip(ctx, tokens, targets, o.Batch, o.Context, 0, nil)
	shared.Tap, shared.ProductTap = nil, nil
	if err != nil {
		return 0, err
	}
	if err := r.before(ctx, step); err != nil {
		return 0, err
	}
	return loss, r.again(ctx, step)
}

// before makes the FP8 model what it was before a step that is kept.
func (r *runner) before(ctx context.Context, step int64) error {
	from, err := r.fp8.flight.rewinder.Back(ctx, step, r.fp8.Model, &r.fp8.Optimizer)
	for n := from; n < step && err == nil; n++ {
		err = r.again(ctx, n)
	}
	return err
}

// Timeline lists what happened to the FP8 model, and what FP32 had too, by step.
func (r *Result) Timeline() (all []landing.Moment) {
	add := func(step int64, format string, args ...any) {
		all = append(all, landing.Moment{Step: int(step), What: fmt.Sprintf(format, args...)})
	}
	for _, a := range r.Alarms {
		add(a.Step, "Rule %d: %s: %s.", a.Number(), a.What(), a.Done)
	}
	for _, s := range r.Skips {
		add(int64(s.Step), "%s: the step was not taken, as a gradient is not finite: %s.", r.Called(s.Model), s.reason())
	}
	for _, s := range r.Spikes {
		add(s.Step, "Spike of %s's %s, %.3g after a median of %.3g, of %s. Suspect: %s.",
			r.Called(s.Model), s.Series, s.Value, s.Median, r.Whose(s), s.Suspected())
	}
	byRule := func(a Alarm) bool { return a.Of.Action == train.ActionStop && a.Step == int64(r.Landing.Step) }
	if r.Landing != nil && !slices.ContainsFunc(r.Alarms, byRule) {
		add(int64(r.Landing.Step), "The run stopped: %s.", r.Landing.Cause)
	}
	slices.SortStableFunc(all, func(a, b landing.Moment) int { return cmp.Compare(a.Step, b.Step) })
	const most = 1000    // a page groups those that are alike
	if len(all) > most { // the first, and how it ended
		all = append(all[:most-1], all[len(all)-1])
	}
	return all
}

// LandingCharts show the last steps.
func (r *Result) LandingCharts() []chart.Chart {
	last := *r
	last.Points = r.Points[max(0, len(r.Points)-100):]
	return []chart.Chart{last.LossChart(), last.normChart()}
}
