package optim

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Skip is a step that was not taken because a gradient was not finite.
type Skip struct {
	Norm     float64             // of all gradients: NaN or +Inf
	Gradient telemetry.NonFinite // the first such gradient, by parameter and index; its Op is "gradient"

	// First is the first NaN or infinite value that the recorder ever heard of, which
	// usually explains the gradient; without a recorder it is Gradient.
	First telemetry.NonFinite
}

// StepOrSkip is [AdamW.Step] but for a norm that is not finite, which it takes for a
// step to be skipped and not for an error: it returns what was wrong, and parameters,
// moments, [AdamW.Steps] and the powers of Beta1 and Beta2 are as before. A nil Skip
// is a step that was taken.
//
// The recorder, which may be nil, should be the one that listens to the model. It is
// told of the gradient, and asked for what was first. A recorder remembers only the
// first value of its life, so that a new one is needed to explain a second skip; see
// package telemetry on how to keep one total of several. After a skip call
// [nn.Scaling.DropStep] instead of [nn.Scaling.EndStep].
func (o *AdamW) StepOrSkip(ctx context.Context, params []*nn.Param, lr float64, r *telemetry.Recorder) (norm float64, skip *Skip, err error) {
	if err := o.guard.Enter(adamName); err != nil {
		return 0, nil, err
	}
	defer o.guard.Leave()
	if norm, err = o.norm(ctx, params, lr); err != nil {
		return norm, nil, err
	}
	if number.IsFinite(norm) {
		return norm, nil, o.step(params, lr, norm)
	}
	o.skipped++
	skip = &Skip{Norm: norm, Gradient: firstNonFinite(params)}
	r.NonFinite(skip.Gradient.Op, skip.Gradient.Tensor, skip.Gradient.Index, skip.Gradient.Value)
	skip.First = skip.Gradient
	if first, ok := r.FirstNonFinite(); ok {
		skip.First = first
	}
	return norm, skip, nil
}

// Skipped returns the number of steps that [AdamW.StepOrSkip] skipped.
func (o *AdamW) Skipped() int64 { return o.skipped }

// firstNonFinite returns the first gradient that is not finite.
func firstNonFinite(params []*nn.Param) telemetry.NonFinite {
	for _, p := range params {
		for i, g := range p.Grad {
			if v := float64(g); !number.IsFinite(v) {
				return telemetry.NonFinite{Tensor: p.Name, Op: "gradient", Index: i, Value: v}
			}
		}
	}
	return telemetry.NonFinite{}
}
