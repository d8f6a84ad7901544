package train

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/parallel"
)

// AdamW is Adam with decoupled weight decay (Loshchilov & Hutter, arXiv
// 1711.05101), all in FP32. The zero value is ready to use; the options must not
// change after the first step. It must not be copied after that, nor used
// concurrently.
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

	Workers int // goroutines; 0: GOMAXPROCS. Results do not depend on it.

	moments        []moments
	power1, power2 float64 // Beta1 and Beta2 to the number of steps
}

// largestNorm keeps the square of every gradient in the range of float32.
const largestNorm = 1e19

// moments are the running means of a parameter's gradient and of its square.
type moments struct{ first, second []float32 }

// Step moves the values of params against their gradients by the learning rate
// lr, and returns the norm of the gradients before clipping. It does not change
// gradients. All steps must be given the same params. A norm that is not finite,
// or above 1e19 unless it is clipped, is an error, and so is an option or lr out of range; nothing is changed then.
func (o *AdamW) Step(params []*Param, lr float64) (norm float64, err error) {
	if err := o.check(params, lr); err != nil {
		return 0, err
	}
	norm = gradientNorm(params)
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return norm, fmt.Errorf("train: the gradient norm is %v: it must be finite", norm)
	}
	if (o.Clip == 0 || o.Clip > largestNorm) && norm > largestNorm {
		return norm, fmt.Errorf("train: the gradient norm is %v: above %v the second moment overflows FP32: set AdamW.Clip", norm, largestNorm)
	}
	o.start(params)
	rule := o.rule(lr, norm)
	for i, p := range params {
		rule := rule
		if !p.Decay {
			rule.keep = 1
		}
		m := o.moments[i]
		parallel.For(len(p.Value), elementGrain, o.Workers, func(lo, hi int) {
			rule.apply(p.Value[lo:hi], p.Grad[lo:hi], m.first[lo:hi], m.second[lo:hi])
		})
	}
	return norm, nil
}

// check returns an error that names what is out of range.
func (o *AdamW) check(params []*Param, lr float64) error {
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
			return fmt.Errorf("train: %s is %v: it must be from %v to %v", option.name, option.value, option.low, option.high)
		}
	}
	if o.Eps != 0 && float32(o.Eps) == 0 {
		return fmt.Errorf("train: AdamW.Eps is %v: it must not be 0 in FP32", o.Eps)
	}
	if o.moments == nil {
		return nil
	}
	if len(params) != len(o.moments) {
		return fmt.Errorf("train: AdamW.Step is given %d parameters: it had %d before", len(params), len(o.moments))
	}
	for i, p := range params {
		if n := len(o.moments[i].first); len(p.Value) != n {
			return fmt.Errorf("train: AdamW.Step is given %s of %d elements: it had %d before", p.Name, len(p.Value), n)
		}
	}
	return nil
}

// start makes the moments before the first step, and counts the step.
func (o *AdamW) start(params []*Param) {
	if o.moments == nil {
		o.moments = make([]moments, len(params))
		for i, p := range params {
			o.moments[i] = moments{make([]float32, len(p.Value)), make([]float32, len(p.Value))}
		}
		o.power1, o.power2 = 1, 1
	}
	o.power1 *= orDefault(o.Beta1, 0.9)
	o.power2 *= orDefault(o.Beta2, 0.95)
}

// gradientNorm returns the root of the sum of the squares of all gradients, added
// up in order.
func gradientNorm(params []*Param) float64 {
	var sum float64
	for _, p := range params {
		for _, g := range p.Grad {
			sum += float64(float64(g) * float64(g))
		}
	}
	return math.Sqrt(sum)
}

// updateRule is one step's arithmetic, the same for every element.
type updateRule struct {
	clip                     float32 // factor of the gradient
	beta1, beta2, new1, new2 float32 // shares of the old and the new in the moments
	step                     float32 // learning rate / (1 - Beta1**t)
	unbias                   float32 // 1 / sqrt(1 - Beta2**t)
	eps                      float32
	keep                     float32 // what weight decay leaves of a value
}

func (o *AdamW) rule(lr, norm float64) updateRule {
	beta1, beta2 := orDefault(o.Beta1, 0.9), orDefault(o.Beta2, 0.95)
	clip := 1.0
	if o.Clip > 0 && norm > o.Clip {
		clip = o.Clip / norm
	}
	return updateRule{
		clip:   float32(clip),
		beta1:  float32(beta1),
		beta2:  float32(beta2),
		new1:   float32(1 - beta1),
		new2:   float32(1 - beta2),
		step:   float32(lr / (1 - o.power1)),
		unbias: float32(1 / math.Sqrt(1-o.power2)),
		eps:    float32(orDefault(o.Eps, 1e-8)),
		keep:   float32(1 - float64(lr*o.WeightDecay)),
	}
}

// apply updates all four slices but grad.
func (r updateRule) apply(value, grad, first, second []float32) {
	grad, first, second = grad[:len(value)], first[:len(value)], second[:len(value)]
	for i, v := range value {
		g := float32(grad[i] * r.clip)
		m := float32(first[i]*r.beta1) + float32(g*r.new1)
		s := float32(second[i]*r.beta2) + float32(float32(g*g)*r.new2)
		first[i], second[i] = m, s
		root := float32(math.Sqrt(float64(s)))
		value[i] = float32(v*r.keep) - float32(r.step*m)/(float32(root*r.unbias)+r.eps)
	}
}

func orDefault(v, byDefault float64) float64 {
	if v == 0 {
		return byDefault
	}
	return v
}
