package scaling

import "fmt"

// Histories are the histories of a model's tensors by name: the scaling state
// that a checkpoint has to hold. The zero value is empty and ready to use. Not
// safe for concurrent use.
type Histories struct {
	step  int64
	named map[string]*History
	saved map[string]HistoryState // restored and not asked for yet
}

// Get returns the history of the named tensor, which it makes, or takes from
// the restored state, when it is asked for first. It is an error if r is not a
// delayed recipe, or not that of the history that is there.
func (hs *Histories) Get(name string, r Recipe) (*History, error) {
	h, err := NewHistory(r)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	if known := hs.named[name]; known != nil {
		if err := known.checkRecipe(r); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		return known, nil
	}
	if s, ok := hs.saved[name]; ok {
		if err := h.checkState(name, s); err != nil {
			return nil, err
		}
		h.restore(s)
		delete(hs.saved, name)
	}
	if hs.named == nil {
		hs.named = make(map[string]*History)
	}
	hs.named[name] = h
	return h, nil
}

// Update ends the step of every history. Of those that nobody has asked for yet it
// only forgets the step that ended, as only a recipe says how their scales follow.
func (hs *Histories) Update() {
	hs.step++
	for _, h := range hs.named {
		h.Update()
	}
	hs.forgetSaved()
}

// DropStep forgets what was observed since the last Update or DropStep, as if this
// step had not been: an infinite amax of a step that is skipped stays in no history.
func (hs *Histories) DropStep() {
	for _, h := range hs.named {
		for i := range h.blocks {
			h.blocks[i].amax[0] = 0
		}
	}
	hs.forgetSaved()
}

// forgetSaved drops what others observed in this step of histories that nobody has
// asked for, lest it count as observed in the next step too.
func (hs *Histories) forgetSaved() {
	for _, s := range hs.saved {
		for i := range s.Blocks {
			s.Blocks[i].Current = 0
		}
	}
}

// Step returns the number of updates.
func (hs *Histories) Step() int64 { return hs.step }

// State returns a copy of the state of all histories.
func (hs *Histories) State() State {
	s := State{Version: stateVersion, Step: hs.step, Histories: make(map[string]HistoryState)}
	for name, h := range hs.named {
		s.Histories[name] = h.state()
	}
	for name, saved := range hs.saved {
		s.Histories[name] = saved.clone()
	}
	return s
}

// Restore replaces the state of all histories, those that were handed out before
// included, by a saved one. A history that the state lacks becomes empty. One
// whose length has changed meanwhile keeps its newest steps; steps it never had
// count as 0. It returns an error, and changes nothing, if the state does not
// pass [State.Check], is of another format or block, or is too large.
func (hs *Histories) Restore(s State) error {
	if err := s.Check(); err != nil {
		return err
	}
	for _, name := range s.names() {
		if h := hs.named[name]; h != nil {
			if err := h.checkState(name, s.Histories[name]); err != nil {
				return err
			}
		}
	}
	hs.step = s.Step
	hs.saved = make(map[string]HistoryState, len(s.Histories))
	for name, h := range s.Histories {
		hs.saved[name] = h.clone()
	}
	for name, h := range hs.named {
		h.reset()
		if saved, ok := hs.saved[name]; ok {
			h.restore(saved)
			delete(hs.saved, name)
		}
	}
	return nil
}
