package nn

import (
	"hash/fnv"
	"strconv"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
)

// gradientSeeds gives each stochastic rounding of a layer's gradients a seed of its
// own. Nil rounds as policies say.
type gradientSeeds struct {
	layer   string
	seed    uint64
	scaling *Scaling

	begun uint64 // passes that had begun at the last Backward
	uses  int    // calls of Backward in this pass
}

func newGradientSeeds(layer string, seed uint64, s *Scaling) *gradientSeeds {
	s.stochastic = true
	return &gradientSeeds{layer: layer, seed: seed, scaling: s}
}

// begin begins a Backward of the layer. A layer that is used twice in a pass, or in a
// model that does not count its passes, rounds with other numbers each time.
func (s *gradientSeeds) begin() {
	if s == nil {
		return
	}
	if s.uses++; s.begun != s.scaling.begun {
		s.begun, s.uses = s.scaling.begun, 1
	}
}

// policy returns p, or p at random for the gradient of a product.
func (s *gradientSeeds) policy(p fp8.Policy, op string) fp8.Policy {
	if s == nil {
		return p
	}
	name := fnv.New64a()
	name.Write([]byte(s.layer + " " + op))
	if s.uses > 1 {
		name.Write([]byte(" " + strconv.Itoa(s.uses)))
	}
	p.Rounding, p.Seed = fp8.Stochastic, random.Hash(s.seed, s.scaling.pass, name.Sum64())
	return p
}
