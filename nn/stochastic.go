package nn

import (
	"hash/fnv"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/random"
)

// gradientSeeds gives each stochastic rounding of a layer's gradients a seed of its
// own. Nil rounds as policies say.
type gradientSeeds struct {
	layer string
	seed  uint64
	pass  uint64 // number of the backward pass
}

// policy returns p, or p at random for the gradient of a product.
func (s *gradientSeeds) policy(p fp8.Policy, op string) fp8.Policy {
	if s == nil {
		return p
	}
	name := fnv.New64a()
	name.Write([]byte(s.layer + " " + op))
	p.Rounding, p.Seed = fp8.Stochastic, random.Hash(s.seed, s.pass, name.Sum64())
	return p
}

func (s *gradientSeeds) setPass(n uint64) {
	if s != nil {
		s.pass = n
	}
}

func (s *gradientSeeds) endPass() {
	if s != nil {
		s.pass++
	}
}

// SetPass makes n the number of the next [Linear.Backward], on which stochastic
// rounding of gradients depends; each call after it has the number that follows. A new
// layer begins with 0. One that goes on where another stopped needs the number of
// passes done; a [Llama] numbers the passes of its layers itself.
func (l *Linear) SetPass(n uint64) {
	if p, ok := l.dense.products.(interface{ setPass(n uint64) }); ok {
		p.setPass(n)
	}
}

// beginBackward gives all layers the number of a backward pass.
func (m *Llama) beginBackward() {
	for _, l := range m.linears() {
		l.SetPass(m.backwards)
	}
	m.backwards++
}

// stochasticGradients reports whether random numbers depend on the number of the
// backward pass.
func (c Config) stochasticGradients() bool {
	return c.FP8 != nil && c.FP8.Stochastic || c.Rounding != nil && c.Rounding.Stochastic
}
