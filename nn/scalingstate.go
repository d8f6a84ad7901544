package nn

import (
	"fmt"

	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// ScalingState is what a model's linear layers remember, as plain data, to be kept as
// JSON: the histories of delayed recipes, and of each layer's Smooth-SwiGLU, which
// just-in-time scales do not have, and how many backward passes there were.
type ScalingState struct {
	Histories scaling.State  `json:"histories"`
	Smoothers []swiglu.State `json:"smoothers"` // by layer

	// Backwards is the number of the next backward pass, on which stochastic rounding
	// of gradients depends; without that it is 0. Each [Llama.Backward] counts, those of
	// accumulated batches and of steps that were skipped or dropped included.
	Backwards uint64 `json:"backwards,omitempty"`
}

// ScalingState returns a copy of the model's scaling state.
func (m *Llama) ScalingState() ScalingState {
	s := ScalingState{Histories: m.histories.State()}
	for _, b := range m.blocks {
		s.Smoothers = append(s.Smoothers, b.mlp.smoother.State())
	}
	if m.cfg.stochasticGradients() {
		s.Backwards = m.backwards
	}
	return s
}

// RestoreScaling replaces the model's scaling state. It returns an error, and
// changes nothing, if the state is not of as many layers or does not pass the
// checks of [scaling.Histories.Restore] and [swiglu.Smoother.Restore].
func (m *Llama) RestoreScaling(s ScalingState) error {
	if len(s.Smoothers) != len(m.blocks) {
		return fmt.Errorf("nn: scaling state of %d layers: the model has %d", len(s.Smoothers), len(m.blocks))
	}
	for i, state := range s.Smoothers {
		if err := state.Check(); err != nil {
			return fmt.Errorf("nn: scaling state of layer %d: %w", i, err)
		}
	}
	if err := m.histories.Restore(s.Histories); err != nil {
		return fmt.Errorf("nn: %w", err)
	}
	for i, b := range m.blocks {
		if err := b.mlp.smoother.Restore(s.Smoothers[i]); err != nil {
			return fmt.Errorf("nn: scaling state of layer %d: %w", i, err)
		}
	}
	m.backwards = s.Backwards
	m.haveLoss = false
	return nil
}

// MergeScaling returns the scaling state of data-parallel workers as one, by
// [scaling.Merge] and [swiglu.Merge]; the largest Backwards counts, and it is for the
// workers to give their passes different numbers, as [DataParallel] does. It is an
// error if there is no state, if they are not of as many layers, or if those functions
// return one.
func MergeScaling(states ...ScalingState) (merged ScalingState, err error) {
	if len(states) == 0 {
		return merged, fmt.Errorf("nn: there is no scaling state to merge")
	}
	histories := make([]scaling.State, len(states))
	for i, s := range states {
		if len(s.Smoothers) != len(states[0].Smoothers) {
			return ScalingState{}, fmt.Errorf("nn: worker %d: scaling state of %d layers, worker 0 has %d", i, len(s.Smoothers), len(states[0].Smoothers))
		}
		histories[i] = s.Histories
		merged.Backwards = max(merged.Backwards, s.Backwards)
	}
	if merged.Histories, err = scaling.Merge(histories...); err != nil {
		return ScalingState{}, err
	}
	for layer := range states[0].Smoothers {
		smoothers := make([]swiglu.State, len(states))
		for i, s := range states {
			smoothers[i] = s.Smoothers[layer]
		}
		smoother, err := swiglu.Merge(smoothers...)
		if err != nil {
			return ScalingState{}, fmt.Errorf("nn: layer %d: %w", layer, err)
		}
		merged.Smoothers = append(merged.Smoothers, smoother)
	}
	return merged, nil
}

// Evaluate is [Llama.Loss] without a trace in training: nobody hears of it, no
// amax enters a history, and Backward cannot follow.
func (m *Llama) Evaluate(tokens, targets []int32, batch, seq int) (float32, error) {
	listener, state := m.listener, m.ScalingState()
	m.Listen(nil)
	loss, err := m.loss(tokens, targets, batch, seq, false)
	m.Listen(listener)
	if restored := m.RestoreScaling(state); err == nil {
		err = restored
	}
	return loss, err
}
