package optim

import (
	"context"
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/guard"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/nn"
)

// AdamW is Adam with decoupled weight decay (Loshchilov & Hutter, arXiv
// 1711.05101), computed in FP32; Moments says how it remembers. The zero value is
// ready to use; the options must not change after the first step. It must not be
// copied after that, nor used concurrently: a step while another one goes on is
// [ErrConcurrent]. Moments and what becomes of them depend on
// the values, gradients and options alone: not on Workers, and not on the machine.
type AdamW struct {
	Beta1 float64 // decay of the first moment; 0: 0.9
	Beta2 float64 // decay of the second moment; 0: 0.95
	Eps   float64 // added to the root of the second moment; 0: 1e-8

	// WeightDecay times the learning rate is the share of a matrix that is
	// subtracted from it at each step; vectors do not decay. 0: none.
	WeightDecay float64

	// Clip is the largest norm of all gradients together: they are scaled down to
	// it. 0: no limit.
	Clip float64

	Moments Moments // how both moments are kept; the zero value: FP32
	Workers int     // goroutines; 0: GOMAXPROCS. Results do not depend on it.

	guard          guard.Guard
	moments        [][2]moment // of each parameter, first and second
	steps, skipped int64
	power1, power2 float64 // Beta1 and Beta2 to the number of steps
	update         update
	holds          *sync.WaitGroup // nil: nobody ever held o
}

const adamName = "optim: an AdamW"

// largestNorm keeps the square of every gradient in the range of float32.
const largestNorm = 1e19

// Step moves the values of params against their gradients by the learning rate
// lr, and returns the norm of the gradients before clipping. It does not change
// gradients. All steps must be given the same params. After the first it allocates
// nothing.
//
// It returns an error, and changes nothing, if the norm is not finite (but see
// [AdamW.StepOrSkip]) or above 1e19 without being clipped, which is [ErrNonFinite]; if
// an option or lr is out of range, [ErrOption]; if params are not those of the steps
// before, [ErrParams]; or if ctx has ended. A step that has begun to move values is
// not interrupted.
func (o *AdamW) Step(ctx context.Context, params []*nn.Param, lr float64) (norm float64, err error) {
	if err := o.guard.Enter(adamName); err != nil {
		return 0, err
	}
	defer o.guard.Leave()
	if norm, err = o.norm(ctx, params, lr); err != nil {
		return norm, err
	}
	if !number.IsFinite(norm) {
		return norm, sentinel.Errorf(ErrNonFinite, "optim: the gradient norm is %v: it must be finite", norm)
	}
	return norm, o.step(params, lr, norm)
}

// StepNorm is [AdamW.Step] of a part of a model's parameters, such as those of which a
// rank has the moments, given the norm of the gradients of all: by that they are clipped.
func (o *AdamW) StepNorm(ctx context.Context, params []*nn.Param, lr, norm float64) error {
	if err := o.guard.Enter(adamName); err != nil {
		return err
	}
	defer o.guard.Leave()
	if err := o.check(params, lr); err != nil {
		return err
	}
	if !number.IsFinite(norm) || norm < 0 {
		return sentinel.Errorf(ErrNonFinite, "optim: the gradient norm is %v: it must be finite and not negative", norm)
	}
	if err := meter.Err(ctx); err != nil {
		return err
	}
	return o.step(params, lr, norm)
}

// norm returns the norm of gradients that can be stepped by, once it is finite.
func (o *AdamW) norm(ctx context.Context, params []*nn.Param, lr float64) (float64, error) {
	if err := o.check(params, lr); err != nil {
		return 0, err
	}
	norm := GradientNorm(params)
	return norm, meter.Err(ctx)
}

// step is Step with a norm that is finite.
func (o *AdamW) step(params []*nn.Param, lr, norm float64) error {
	if (o.Clip == 0 || o.Clip > largestNorm) && norm > largestNorm {
		return sentinel.Errorf(ErrNonFinite, "optim: the gradient norm is %v: above %v the second moment overflows FP32: set AdamW.Clip", norm, largestNorm)
	}
	o.waitForHolds()
	if o.moments == nil {
		o.start(params)
	}
	o.steps++
	o.power1 *= o.beta1()
	o.power2 *= o.beta2()
	o.update.run(o, params, o.rule(lr, norm))
	return nil
}

// Steps returns the number of steps taken.
func (o *AdamW) Steps() int64 { return o.steps }

// MomentBytes returns the size of both moments of all parameters, their scales
// included: 0 before the first step.
func (o *AdamW) MomentBytes() (n int) {
	for _, m := range o.moments {
		n += m[firstMoment].bytes() + m[secondMoment].bytes()
	}
	return n
}

// MomentStats returns what happened to the first and the second moments when the
// last step encoded them: nothing in FP32 and BF16. Flushed second moments that are
// not 0 are kept as the smallest code, since a step divides by their roots.
func (o *AdamW) MomentStats() (first, second fp8.Stats) {
	return o.update.stats[firstMoment], o.update.stats[secondMoment]
}

// check returns an error that names what is out of range.
func (o *AdamW) check(params []*nn.Param, lr float64) error {
	for _, option := range []struct {
		name             string
		value, low, high float64
	}{
		{"the learning rate", lr, 0, math.MaxFloat32},
		{"AdamW.Beta1", o.Beta1, 0, 0.999999},
		{"AdamW.Beta2", o.Beta2, 0, 0.999999},
		{"AdamW.Eps", o.Eps, 0, 1},
		{"AdamW.WeightDecay", o.WeightDecay, 0, math.MaxFloat32},
		{"AdamW.Clip", o.Clip, 0, math.MaxFloat64},
	} {
		if !(option.value >= option.low && option.value <= option.high) {
			return optionError("%s is %v: it must be from %v to %v", option.name, option.value, option.low, option.high)
		}
	}
	if o.Eps != 0 && float32(o.Eps) == 0 {
		return optionError("AdamW.Eps is %v: it must not be 0 in FP32", o.Eps)
	}
	if o.Workers < 0 {
		return optionError("AdamW.Workers is %d: it must not be negative", o.Workers)
	}
	if err := o.Moments.check(); err != nil {
		return err
	}
	for i, p := range params {
		switch {
		case p == nil:
			return paramsError("parameter %d is nil", i)
		case len(p.Grad) != len(p.Value) || p.Rows < 0 || p.Cols < 0 || p.Rows*p.Cols != len(p.Value):
			return paramsError("%s, [%d, %d], has %d values and %d gradients", p.Name, p.Rows, p.Cols, len(p.Value), len(p.Grad))
		}
	}
	if o.moments == nil {
		return nil
	}
	if len(params) != len(o.moments) {
		return paramsError("AdamW.Step is given %d parameters: it had %d before", len(params), len(o.moments))
	}
	for i, p := range params {
		if n := o.moments[i][firstMoment].len(); len(p.Value) != n {
			return paramsError("AdamW.Step is given %s of %d elements: it had %d before", p.Name, len(p.Value), n)
		}
	}
	return nil
}

// start makes the moments of params, all 0.
func (o *AdamW) start(params []*nn.Param) {
	o.moments = make([][2]moment, len(params))
	for i, p := range params {
		o.moments[i] = o.Moments.pair(len(p.Value))
	}
	o.power1, o.power2 = 1, 1
}

// GradientNorm returns the root of the sum of the squares of all gradients, added up in
// order: what [AdamW.Step] returns and clips by.
func GradientNorm(params []*nn.Param) float64 {
	var sum float64
	for _, p := range params {
		for _, g := range p.Grad {
			sum += float64(float64(g) * float64(g))
		}
	}
	return math.Sqrt(sum)
}
