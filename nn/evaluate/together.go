package evaluate

import (
	"cmp"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
)

// optionsOf returns the options of linear layers under a recipe in a mode. They are for as long as
// the weights of a slot's layer have their values.
func (e *evaluator) optionsOf(r Recipe, m Mode) func(slot) nn.Options {
	return func(s slot) nn.Options {
		of := r.of(s.name)
		if w := of.Weight.Recipe; w != nil && w.Profile.Outer() && e.Together != nil {
			one := *w
			// That of zeros is the one of an outer scale of 1, as in files: others give NaN.
			one.OuterAmax = cmp.Or(e.amaxTogether(r, s, w.Profile), 448*w.Format.Max())
			if one.Check() == nil { // else there are several outer scales, or the amax is infinite
				of.Weight.Recipe = &one
			}
		}
		return of.options(m)
	}
}

// sharing names what an outer scale is of: the weights of a recipe that are together.
type sharing struct {
	together, recipe string
	profile          scaling.Profile
}

// amaxTogether returns the largest magnitude of the weights that are together with that of a slot,
// and by the same profile, in a recipe.
func (e *evaluator) amaxTogether(r Recipe, s slot, p scaling.Profile) float32 {
	of := sharing{e.Together(s.name), r.Name, p}
	amax, known := e.amaxes[of]
	if known {
		return amax
	}
	for _, other := range e.slots {
		w := r.of(other.name).Weight.Recipe
		if other.layer == s.layer && e.Together(other.name) == of.together && w != nil && w.Profile == p {
			a, _ := fp8.Amax(other.plain.Weight.Value)
			amax = max(amax, a)
		}
	}
	e.amaxes[of] = amax
	return amax
}
