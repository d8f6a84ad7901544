package evaluate

import (
	"cmp"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
)

// optionsOf returns the options of linear layers under a recipe in a mode. They are for as long as
// the weights of a slot's layer have their values.
func (e *evaluator) optionsOf(r Recipe, m Mode) func(slot) nn.Options {
	return func(s slot) nn.Options {
		of := r.of(s.name)
		if w := of.Weight.Recipe; w != nil && w.Profile.Outer() && e.Together != nil {
			shared := *w
			// That of zeros is the one of an outer scale of 1, as in files: others give NaN.
			shared.OuterAmax = cmp.Or(e.amaxTogether(s), 448*w.Format.Max())
			if shared.Check() == nil { // else there are several outer scales, or the amax is infinite
				of.Weight.Recipe = &shared
			}
		}
		return of.options(m)
	}
}

// amaxTogether returns the largest magnitude of the weights that are together with that of a slot.
func (e *evaluator) amaxTogether(s slot) float32 {
	name := e.Together(s.name)
	amax, known := e.amaxes[name]
	if known {
		return amax
	}
	for _, other := range e.slots {
		if other.layer == s.layer && e.Together(other.name) == name {
			a, _ := fp8.Amax(other.plain.Weight.Value)
			amax = max(amax, a)
		}
	}
	e.amaxes[name] = amax
	return amax
}
