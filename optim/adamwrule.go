package optim

import (
	"cmp"
	"math"
)

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
	beta1, beta2 := o.beta1(), o.beta2()
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
		eps:    float32(o.eps()),
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

func (o *AdamW) beta1() float64 { return cmp.Or(o.Beta1, 0.9) }
func (o *AdamW) beta2() float64 { return cmp.Or(o.Beta2, 0.95) }
func (o *AdamW) eps() float64   { return cmp.Or(o.Eps, 1e-8) }
