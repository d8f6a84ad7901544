package comparison

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/internal/trial"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// Alarm is a rule that held, and what came of it.
type Alarm struct {
	train.Alarm
	Of   train.Rule
	Done string // such as "the step was not taken"
}

// flight is what rules do with a run.
type flight struct {
	watch    train.Watch
	rewinder train.Rewinder
	raised   []train.Alarm // in this step
	recent   recent        // what was heard of the last steps, for a landing
	lands    bool

	first   *nn.Llama // the model that the run began with
	next    *nn.Llama // the one from the next step on; nil: the same
	widened []string  // operands that were given to Widen, one after another

	// checkpoints is the number of steps from one to the next, 0 for none. A run goes back
	// over none of them, so that one that resumes has all that it may go back to.
	checkpoints int

	held   map[int64]bool // steps that were computed and not taken
	undone map[int64]bool // steps that were gone back over
	back   int64          // first of them, the last time
}

func newFlight(rules []train.Rule, lands bool) *flight {
	f := &flight{held: map[int64]bool{}, undone: map[int64]bool{}, lands: lands}
	f.rewinder.Every = 10
	f.watch.Rules = rules
	for _, r := range rules {
		f.rewinder.Every = max(f.rewinder.Every, r.Steps)
	}
	return f
}

// strongest returns what is to be done of all that alarms ask for.
func (f *flight) strongest(alarms []train.Alarm) (most train.Action) {
	for _, a := range alarms {
		most = max(most, f.watch.Rules[a.Rule].Action)
	}
	return most
}

// rewinds reports whether the run may have to go back.
func (f *flight) rewinds() bool {
	return f.lands || slices.ContainsFunc(f.watch.Rules, func(r train.Rule) bool { return r.Action == train.ActionRewind })
}

// begin begins a step: what is seen in it is judged before it is taken.
func (f *flight) begin(s *side, result *Result, step int, recorder *telemetry.Recorder) error {
	if f == nil {
		return nil
	}
	if f.next != nil {
		s.Model, result.ModelFP8, f.next = f.next, f.next, nil
		s.Model.Listen(recorder)
		f.rewinder.Forget()
	}
	if f.checkpoints > 0 && step%f.checkpoints == 0 {
		f.rewinder.Forget()
	}
	if f.rewinds() {
		if err := f.rewinder.Keep(int64(step), s.Model, &s.Optimizer); err != nil {
			return err
		}
	}
	s.Hold = func(figures trial.Figures) (bool, error) {
		if err := recorder.Flush(); err != nil {
			return false, err
		}
		f.watch.Observe(train.SeriesLoss, int64(step), figures.Loss)
		f.watch.Observe(train.SeriesGradientNorm, int64(step), figures.GradientNorm)
		f.raised = f.watch.Alarms()
		held := f.strongest(f.raised) >= train.ActionSkip
		f.held[int64(step)] = held
		return held, nil
	}
	return nil
}

// act does what the alarms of a step ask for.
func (r *runner) act(ctx context.Context, step int) error {
	f := r.fp8.flight
	if f == nil {
		return nil
	}
	raised := append(f.raised, f.watch.Alarms()...) // those of the gradient itself came later
	f.raised = nil
	back, err := r.goBack(ctx, raised, int64(step))
	if err != nil {
		return err
	}
	widened := map[string]string{}
	for _, a := range raised {
		alarm := Alarm{Alarm: a, Of: f.watch.Rules[a.Rule]}
		switch alarm.Of.Action {
		case train.ActionNote:
			alarm.Done = "noted"
		case train.ActionWiden:
			if alarm.Done, err = r.widen(&alarm, widened); err != nil {
				return err
			}
		case train.ActionSkip:
			alarm.Done = "the step was not taken"
		case train.ActionRewind:
			alarm.Done = back
		case train.ActionStop:
			alarm.Done = "the step was not taken, and the run ended"
		}
		r.result.Alarms = append(r.result.Alarms, alarm)
	}
	return nil
}

// goBack goes back to before the first step of all alarms that ask for it, and does those
// steps again that come before. What ends the run is left as it is.
func (r *runner) goBack(ctx context.Context, raised []train.Alarm, step int64) (string, error) {
	f, s := r.fp8.flight, r.fp8
	if f.strongest(raised) != train.ActionRewind {
		return "the run ended", nil
	}
	first := step
	for _, a := range raised {
		if f.watch.Rules[a.Rule].Action == train.ActionRewind {
			first = min(first, a.First)
		}
	}
	from, err := f.rewinder.Back(ctx, first, s.Model, &s.Optimizer)
	if err != nil {
		return "", err
	}
	first = max(first, from)
	for n := from; n < first; n++ {
		if err := r.again(ctx, n); err != nil {
			return "", err
		}
	}
	f.back = first
	for n := first; n <= step; n++ {
		f.undone[n] = true
	}
	if first == step {
		return "went back to before this step, without its batch", nil
	}
	return fmt.Sprintf("went back to before step %d, without the batches of steps %d to %d", first, first, step), nil
}

// again does a step of the FP8 model as it was done before, unheard.
func (r *runner) again(ctx context.Context, step int64) error {
	f, s, o := r.fp8.flight, r.fp8, r.result.Options
	if f.undone[step] {
		return nil
	}
	tokens, targets, err := r.corpus.Batch(int(step), o.Batch, o.Context)
	if err != nil {
		return err
	}
	s.Model.Listen(nil)
	s.Hold = func(trial.Figures) (bool, error) { return f.held[step], nil }
	_, _, err = s.StepOrSkip(ctx, tokens, targets, o.Batch, o.Context, r.schedule.At(int(step)), nil)
	return err
}

// widen gives the operand of an alarm, or the one that is suspected where it is of none, a
// wider format, and says what came of it. Of several operands of a kind in a step one counts.
func (r *runner) widen(a *Alarm, widened map[string]string) (string, error) {
	a.Alarm = r.about(*a)
	tensor := a.Tensor
	if tensor == "" {
		return "no operand is suspected, and none was widened", nil
	}
	if done, ok := widened[roleOf(tensor)]; ok {
		return done, nil
	}
	wide, what, err := cmp.Or(r.fp8.flight.next, r.fp8.Model).Widen(tensor)
	if err != nil {
		return "nothing is wider, and it stays as it is", nil
	}
	r.fp8.flight.next, r.fp8.flight.widened = wide, append(r.fp8.flight.widened, tensor)
	done := fmt.Sprintf("widened %v", what)
	widened[roleOf(tensor)] = done
	return done, nil
}

// lossOps returns the operations that the loss or the gradient norm can come from.
func lossOps(s train.Series) []string {
	if s == train.SeriesLoss {
		return forwardOps
	}
	return nil
}

// stoppedByRule returns an error if a rule has ended the run in the last step. One that ended
// it before it was resumed does not end it again.
func (r *runner) stoppedByRule(ctx context.Context) error {
	last := int64(len(r.result.Points) - 1)
	i := slices.IndexFunc(r.result.Alarms, func(a Alarm) bool {
		return a.Of.Action == train.ActionStop && a.Step == last
	})
	if i < 0 {
		return nil
	}
	a := r.result.Alarms[i]
	cause := fmt.Sprintf("rule %d stopped the run: step %d: %s", a.Number(), a.Step, a.What())
	if err := r.land(ctx, int(a.Step), cause, r.about(a)); err != nil {
		return err
	}
	return errors.New(cause)
}

// about returns the alarm with the operand that is suspected, where it is of none.
func (r *runner) about(a Alarm) train.Alarm {
	if a.Tensor == "" {
		if suspect, ok := r.fp8.suspects.Of(a.Step, lossOps(a.Of.Series)...); ok {
			a.Tensor, a.Op = suspect.Tensor, suspect.Op
		}
	}
	return a.Alarm
}
