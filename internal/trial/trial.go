// Package trial is one model in training, as the commands do it: AdamW with
// weight decay 0.1 and gradients clipped to norm 1.
package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/optim"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/train"
)

// Run is a model and its optimizer.
type Run struct {
	Name      string
	Model     *nn.Llama
	Optimizer optim.AdamW
	Window    int           // steps after which delayed scales follow what they met; 0: 1
	Time      time.Duration // spent in steps so far

	// Hold, unless nil, is asked once the gradients of a step are computed, and StepOrSkip does
	// not take the step if it says so.
	Hold func(Figures) (bool, error)
}

// Figures are what a step shows.
type Figures struct {
	Loss         float64 // of the batch, before the step
	GradientNorm float64
}

// New returns a run from the first weights that belong to a seed.
func New(name string, cfg nn.Config, seed uint64) (*Run, error) {
	model, err := nn.NewLlama(cfg, seed)
	if err != nil {
		return nil, err
	}
	return &Run{Name: name, Model: model, Optimizer: optim.AdamW{Clip: 1, WeightDecay: 0.1, Workers: cfg.Workers}}, nil
}

// Step trains on a batch. The error names the run and the loss.
func (r *Run) Step(ctx context.Context, tokens, targets []int32, batch, seq int, rate float64) (f Figures, err error) {
	defer r.count(time.Now())
	if f.Loss, err = r.gradients(ctx, tokens, targets, batch, seq); err != nil {
		return f, err
	}
	if f.GradientNorm, err = r.Optimizer.Step(ctx, r.Model.Params(), rate); err != nil {
		return f, r.broken(f, err)
	}
	r.endStep()
	return f, nil
}

// StepOrSkip is Step but for a gradient that is not finite, which it takes for a step
// to be skipped and not for an error, as [optim.AdamW.StepOrSkip] does. Skip is nil both for
// a step that was taken and for one that Hold held. The recorder is the one that listens to
// the model, or nil.
func (r *Run) StepOrSkip(ctx context.Context, tokens, targets []int32, batch, seq int, rate float64, recorder *telemetry.Recorder) (f Figures, skip *optim.Skip, err error) {
	defer r.count(time.Now())
	if f.Loss, err = r.gradients(ctx, tokens, targets, batch, seq); err != nil {
		return f, nil, err
	}
	params, finite := r.Model.Params(), false
	if r.Hold != nil {
		f.GradientNorm = optim.GradientNorm(params)
		held, err := r.Hold(f)
		if err != nil {
			return f, nil, err
		}
		if finite = number.IsFinite(f.GradientNorm); finite && held {
			r.Model.DropStep()
			return f, nil, nil
		}
	}
	if finite {
		err = r.Optimizer.StepNorm(ctx, params, rate, f.GradientNorm)
	} else { // not known, or to be skipped
		f.GradientNorm, skip, err = r.Optimizer.StepOrSkip(ctx, params, rate, recorder)
	}
	if err != nil {
		return f, nil, r.broken(f, err)
	}
	if skip != nil {
		r.Model.DropStep()
		return f, skip, nil
	}
	r.endStep()
	return f, nil, nil
}

// endStep ends a step that was taken, for delayed scales where their window ends.
func (r *Run) endStep() {
	if r.Optimizer.Steps()%int64(max(r.Window, 1)) == 0 {
		r.Model.EndStep()
	}
}

// gradients computes those of a batch, and returns its loss.
func (r *Run) gradients(ctx context.Context, tokens, targets []int32, batch, seq int) (loss float64, err error) {
	r.Model.ZeroGrad()
	l, err := r.Model.Loss(ctx, tokens, targets, batch, seq)
	if err != nil {
		return 0, err
	}
	return float64(l), r.Model.Backward(ctx)
}

// broken says where the optimizer failed.
func (r *Run) broken(f Figures, err error) error {
	return fmt.Errorf("%s: loss %v: %w", r.Name, float32(f.Loss), err)
}

// count adds the time since the start of a step.
func (r *Run) count(start time.Time) { r.Time += time.Since(start) }

// HeldOut returns the mean loss on the first batches of the held-out text.
func (r *Run) HeldOut(ctx context.Context, corpus *train.Corpus, batches, batch, seq int) (mean float64, err error) {
	return train.Evaluate(ctx, r.Model, batches, func(ctx context.Context, i int) (float32, error) {
		tokens, targets, err := corpus.HeldOut(i, batch, seq)
		if err != nil {
			return 0, err
		}
		return r.Model.Evaluate(ctx, tokens, targets, batch, seq)
	})
}

// Params returns the number of trained values.
func (r *Run) Params() (n int) {
	for _, p := range r.Model.Params() {
		n += len(p.Value)
	}
	return n
}
