package optim

import (
	"github.com/octavo-fp8/octavo/internal/arrays"
	"github.com/octavo-fp8/octavo/nn"
)

// State is what an [AdamW] remembers besides moments.
type State struct {
	Options Options `json:"options"`
	Steps   int64   `json:"steps"`
	Skipped int64   `json:"skipped"`
	Power1  float64 `json:"power1"`
	Power2  float64 `json:"power2"`
}

// Options are those that bits depend on, defaults filled in.
type Options struct {
	Beta1, Beta2, Eps, WeightDecay, Clip float64
	Moments                              Moments
}

// Options returns the options of o.
func (o *AdamW) Options() Options {
	return Options{o.beta1(), o.beta2(), o.eps(), o.WeightDecay, o.Clip, o.Moments.canonical()}
}

// State returns the state of o.
func (o *AdamW) State() State { return State{o.Options(), o.steps, o.skipped, o.power1, o.power2} }

// Check returns an error unless o can step params.
func (o *AdamW) Check(params []*nn.Param) error { return o.check(params, 0) }

// MomentArrays returns the memory of the moments of parameter i: none before the first step.
func (o *AdamW) MomentArrays(i int, name string, shape []int) (all []arrays.Array) {
	if o.moments == nil {
		return nil
	}
	for w, m := range o.moments[i] {
		all = append(all, m.arrays("optimizer."+which(w).String()+"."+name, shape, which(w))...)
	}
	return all
}

// Fresh returns an optimizer with o's options whose moments are all 0.
func (o *AdamW) Fresh(params []*nn.Param) *AdamW {
	fresh := &AdamW{Moments: o.Moments}
	fresh.start(params)
	return fresh
}

// Restore takes over a state that was checked, and the moments of fresh.
func (o *AdamW) Restore(s State, fresh *AdamW) {
	var moments [][2]moment
	if fresh != nil {
		moments = fresh.moments
	}
	o.moments = moments
	o.power1, o.power2 = s.Power1, s.Power2
	o.steps, o.skipped = s.Steps, s.Skipped
	o.update = update{}
}
