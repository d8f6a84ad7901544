package nn

import (
	"maps"
	"slices"

	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// Scaling is what the scales of a model remember from step to step: the histories of
// delayed recipes, those of Smooth-SwiGLU, and the number of the backward pass, on
// which the stochastic rounding of gradients depends; and the biases of routers, which
// follow from what a step has met in the same way. With just-in-time scales that
// are rounded to nearest, and without routers, it has nothing to remember. Its model has it in [Shared]. Not
// safe for concurrent use.
type Scaling struct {
	histories    scaling.Histories
	historyNames map[string]bool
	smoothers    map[string]*swiglu.Smoother
	routers      map[string]*balancer

	passes     uint64 // number of the next backward pass
	pass       uint64 // of the one that began last
	begun      uint64 // passes that have begun since s was made
	stochastic bool   // some layer rounds gradients at random
	restored   uint64 // calls of Restore that changed the state
	inference  int    // calls of Inference that have not returned
}

// Inference calls f in inference: layers that share s record nothing, report nothing
// and keep nothing for Backward, so that s is afterwards what it was before, to the
// bit, whatever f does with them and whether or not it fails. Scales are those of the
// state as it is. A Forward outside that came before needs to be done again for its
// Backward.
func (s *Scaling) Inference(f func() error) error {
	s.inference++
	defer func() { s.inference-- }()
	return f()
}

// BeginBackward begins a backward pass of the whole model. A model calls it before
// the first layer's Backward, once for each pass.
func (s *Scaling) BeginBackward() {
	s.pass = s.passes
	s.passes++
	s.begun++
}

// Pass returns the number of the next backward pass.
func (s *Scaling) Pass() uint64 { return s.passes }

// SetPass makes n the number of the next backward pass. Workers that share a batch
// give the passes of their shards different numbers.
func (s *Scaling) SetPass(n uint64) { s.passes = n }

// Step returns the number of steps that have ended.
func (s *Scaling) Step() int64 { return s.histories.Step() }

// EndStep ends a training step: what was recorded since the last enters the
// histories, and the scales of the next step and the biases of routers follow. Call it once after all of a
// step's batches.
func (s *Scaling) EndStep() {
	s.histories.Update()
	for _, smoother := range s.smoothers {
		smoother.Update()
	}
	for _, b := range s.routers {
		b.endStep()
	}
}

// DropStep ends a step that is not to count, such as one that was skipped: what was
// recorded since the last EndStep or DropStep is forgotten, so that an infinite amax
// does not stay in a history. The numbers of backward passes are not used again.
func (s *Scaling) DropStep() {
	s.histories.DropStep()
	for _, smoother := range s.smoothers {
		smoother.DropStep()
	}
	for _, b := range s.routers {
		b.dropStep()
	}
}

// history returns a new history of the given name.
func (s *Scaling) history(name string, r scaling.Recipe) (*scaling.History, error) {
	if s.historyNames[name] {
		return nil, nameTaken(name)
	}
	h, err := s.histories.Get(name, r)
	if err != nil {
		return nil, err
	}
	if s.historyNames == nil {
		s.historyNames = make(map[string]bool)
	}
	s.historyNames[name] = true
	return h, nil
}

// smoother returns a new smoother of the given name.
func (s *Scaling) smoother(name string, c swiglu.Smoothing) (*swiglu.Smoother, error) {
	if s.smoothers[name] != nil {
		return nil, nameTaken(name)
	}
	if s.smoothers == nil {
		s.smoothers = make(map[string]*swiglu.Smoother)
	}
	smoother := &swiglu.Smoother{Smoothing: c}
	s.smoothers[name] = smoother
	return smoother, nil
}

// balancer returns new biases of the given name.
func (s *Scaling) balancer(name string, experts int, rate float32) (*balancer, error) {
	if s.routers[name] != nil {
		return nil, nameTaken(name)
	}
	if s.routers == nil {
		s.routers = make(map[string]*balancer)
	}
	b := &balancer{rate: rate, bias: make([]float32, experts), load: make([]int64, experts)}
	s.routers[name] = b
	return b, nil
}

func nameTaken(name string) error {
	return configError("%q: another layer with the same Shared has this name, by which scales are remembered", name)
}

// smootherNames returns the names of all smoothers in alphabetical order.
func (s *Scaling) smootherNames() []string { return slices.Sorted(maps.Keys(s.smoothers)) }

// routerNames returns the names of all routers with biases in alphabetical order.
func (s *Scaling) routerNames() []string { return slices.Sorted(maps.Keys(s.routers)) }
