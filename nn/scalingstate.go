package nn

import (
	"fmt"
	"maps"
	"slices"

	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/swiglu"
)

// scalingStateVersion is the version of [ScalingState] that this package writes and
// reads.
const scalingStateVersion = 2

// ScalingState is what [Scaling] saves: plain data, to be kept as JSON.
type ScalingState struct {
	Version   int                     `json:"version"`
	Histories scaling.State           `json:"histories"`
	Smoothers map[string]swiglu.State `json:"smoothers,omitempty"` // by name
	Routers   map[string]RouterState  `json:"routers,omitempty"`   // by name, those with biases

	// Backwards is the number of the next backward pass; 0 where no rounding depends on
	// it. Passes of accumulated batches and of steps that were dropped count.
	Backwards uint64 `json:"backwards,omitempty"`
}

// State returns a copy of the state.
func (s *Scaling) State() ScalingState {
	state := ScalingState{Version: scalingStateVersion, Histories: s.histories.State()}
	for name, smoother := range s.smoothers {
		if state.Smoothers == nil {
			state.Smoothers = make(map[string]swiglu.State)
		}
		state.Smoothers[name] = smoother.State()
	}
	for name, b := range s.routers {
		if state.Routers == nil {
			state.Routers = make(map[string]RouterState)
		}
		state.Routers[name] = b.state()
	}
	if s.stochastic {
		state.Backwards = s.passes
	}
	return state
}

// Restore replaces the state by a saved one. It returns an error, and changes nothing,
// if the state is of another version, has not exactly the histories, smoothers and routers
// of the model, or does not pass the checks of [scaling.Histories.Restore] and
// [swiglu.Smoother.Restore]. The error is [ErrState].
func (s *Scaling) Restore(state ScalingState) error {
	if err := s.Check(state); err != nil {
		return err
	}
	if err := s.histories.Restore(state.Histories); err != nil {
		return stateError("%w", err)
	}
	for _, name := range s.smootherNames() {
		if err := s.smoothers[name].Restore(state.Smoothers[name]); err != nil {
			return stateError("scaling state of %q: %w", name, err)
		}
	}
	for name, b := range s.routers {
		b.restore(state.Routers[name])
	}
	s.passes = state.Backwards
	s.restored++
	return nil
}

// Check returns an error unless [Scaling.Restore] would take the state.
func (s *Scaling) Check(state ScalingState) error {
	if err := state.checkVersion(); err != nil {
		return stateError("%w", err)
	}
	if err := state.Histories.Check(); err != nil {
		return stateError("%w", err)
	}
	if err := s.checkHistories(state.Histories.Histories); err != nil {
		return err
	}
	for _, name := range s.smootherNames() {
		saved, ok := state.Smoothers[name]
		if !ok {
			return stateError("there is no smoothing state of %q, which the model has", name)
		}
		if err := saved.Check(); err != nil {
			return stateError("scaling state of %q: %w", name, err)
		}
	}
	if err := noOthers("smoothing state", state.Smoothers, s.smoothers); err != nil {
		return err
	}
	return s.checkRouters(state.Routers)
}

// checkRouters makes sure that saved routers are those of the model.
func (s *Scaling) checkRouters(saved map[string]RouterState) error {
	for _, name := range s.routerNames() {
		r, ok := saved[name]
		if !ok {
			return stateError("there is no router state of %q, which the model has", name)
		}
		if err := r.check(len(s.routers[name].bias)); err != nil {
			return stateError("router state of %q: %w", name, err)
		}
	}
	return noOthers("router state", saved, s.routers)
}

// noOthers returns an error that names the first state which is saved and not of the model.
func noOthers[S, P any](what string, saved map[string]S, present map[string]P) error {
	for _, name := range slices.Sorted(maps.Keys(saved)) {
		if _, ok := present[name]; !ok {
			return stateError("%s of %q: the model has none of that name", what, name)
		}
	}
	return nil
}

func (s ScalingState) checkVersion() error {
	if s.Version != scalingStateVersion {
		return fmt.Errorf("scaling state of version %d: this package reads version %d", s.Version, scalingStateVersion)
	}
	return nil
}

// checkHistories makes sure that saved histories are those of the model.
func (s *Scaling) checkHistories(saved map[string]scaling.HistoryState) error {
	present := s.histories.State().Histories
	for _, name := range slices.Sorted(maps.Keys(present)) {
		h, ok := saved[name]
		switch {
		case !ok:
			return stateError("there is no scaling history of %q, which the model has", name)
		case h.Format != present[name].Format:
			return stateError("the scaling history of %q is of %v, the model's of %v", name, h.Format, present[name].Format)
		case len(h.Blocks) == 0 || len(present[name].Blocks) == 0: // it is empty
		case len(h.Blocks[0].Past) != len(present[name].Blocks[0].Past):
			return stateError("the scaling history of %q has %d steps, the model's %d", name, len(h.Blocks[0].Past), len(present[name].Blocks[0].Past))
		}
	}
	return noOthers("scaling history", saved, present)
}

// MergeScaling returns the states of data-parallel workers as one, by [scaling.Merge]
// and [swiglu.Merge]; the largest Backwards counts, and it is for the workers to give
// their passes different numbers, as [Scaling.SetPass] lets them. Loads of routers are
// added up, and so must be those of workers that began the step without any. It is an
// error if there is no state, if one is of another version, if they have not the same
// smoothers, routers and biases, or if those functions return one. Workers that end their
// steps together need only exchange a [StepAmax], which is far smaller.
func MergeScaling(states ...ScalingState) (merged ScalingState, err error) {
	if len(states) == 0 {
		return merged, stateError("there is no scaling state to merge")
	}
	merged.Version = scalingStateVersion
	histories := make([]scaling.State, len(states))
	for i, s := range states {
		if err := s.checkVersion(); err != nil {
			return ScalingState{}, stateError("worker %d: %w", i, err)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(s.Smoothers)), slices.Sorted(maps.Keys(states[0].Smoothers))) {
			return ScalingState{}, stateError("the scaling state of worker %d has other smoothers than that of worker 0", i)
		}
		histories[i] = s.Histories
		merged.Backwards = max(merged.Backwards, s.Backwards)
	}
	if merged.Histories, err = scaling.Merge(histories...); err != nil {
		return ScalingState{}, stateError("%w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(states[0].Smoothers)) {
		smoothers := make([]swiglu.State, len(states))
		for i, s := range states {
			smoothers[i] = s.Smoothers[name]
		}
		smoother, err := swiglu.Merge(smoothers...)
		if err != nil {
			return ScalingState{}, stateError("%s: %w", name, err)
		}
		if merged.Smoothers == nil {
			merged.Smoothers = make(map[string]swiglu.State)
		}
		merged.Smoothers[name] = smoother
	}
	merged.Routers, err = mergeRouters(states)
	return merged, err
}

// mergeRouters adds the loads of routers, whose biases must be the same.
func mergeRouters(states []ScalingState) (merged map[string]RouterState, err error) {
	for i, s := range states {
		if i == 0 && len(s.Routers) > 0 {
			merged = make(map[string]RouterState)
		}
		if len(s.Routers) != len(states[0].Routers) {
			return nil, stateError("the scaling state of worker %d has %d routers, that of worker 0 %d",
				i, len(s.Routers), len(states[0].Routers))
		}
		for _, name := range slices.Sorted(maps.Keys(s.Routers)) {
			r, all := s.Routers[name], merged[name]
			if i == 0 {
				all = RouterState{slices.Clone(r.Bias), make([]int64, len(r.Load))}
			}
			if !slices.Equal(r.Bias, all.Bias) {
				return nil, stateError("%s: the biases of worker %d are not those of worker 0", name, i)
			}
			if all.Load, err = addLoads(all.Load, r.Load); err != nil {
				return nil, stateError("%s: worker %d: %w", name, i, err)
			}
			merged[name] = all
		}
	}
	return merged, nil
}
