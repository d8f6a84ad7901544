package train

import (
	"cmp"
	"encoding/json"
	"slices"
)

// watchState is what a [Watch] remembers, in JSON.
type watchState struct {
	Version int            `json:"version"`
	Series  []watchedState `json:"series"`
}

// watchedState is what is remembered of a series under a rule.
type watchedState struct {
	Rule   int       `json:"rule"` // index
	Tensor string    `json:"tensor,omitempty"`
	Op     string    `json:"op,omitempty"`
	Row    int       `json:"row,omitempty"` // steps in a row in which it was too much
	First  int64     `json:"first,omitempty"`
	Last   int64     `json:"last,omitempty"`
	Past   []float64 `json:"past,omitempty"` // of amax, logarithms to base 2
}

const watchVersion = 1

// MarshalJSON implements [json.Marshaler]: a watch with the same rules that is given it goes
// on where w was. Rules are not kept, nor are alarms that were not yet returned. All numbers
// are finite.
func (w *Watch) MarshalJSON() ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := watchState{Version: watchVersion, Series: []watchedState{}}
	for of, p := range w.past {
		s := watchedState{Rule: of.rule, Tensor: of.tensor, Op: of.op, Row: p.row, Past: p.values.Past}
		if p.row > 0 {
			s.First, s.Last = p.first, p.last
		}
		state.Series = append(state.Series, s)
	}
	slices.SortFunc(state.Series, func(a, b watchedState) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Tensor, b.Tensor), cmp.Compare(a.Op, b.Op))
	})
	return json.Marshal(state)
}

// UnmarshalJSON implements [json.Unmarshaler] for a watch that has its rules. A state of
// another version is an error, [ErrVersion], and one of other rules or that makes no sense is
// [ErrInput]; they leave w as it is.
func (w *Watch) UnmarshalJSON(text []byte) error {
	var state watchState
	if err := json.Unmarshal(text, &state); err != nil {
		return err
	}
	if state.Version != watchVersion {
		return versionError("train: a watch of version %d: this package reads version %d", state.Version, watchVersion)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	past := make(map[watched]*watchPast, len(state.Series))
	for _, s := range state.Series {
		if s.Rule < 0 || s.Rule >= len(w.Rules) {
			return inputError("train: a watch remembers rule %d: there are %d", s.Rule, len(w.Rules))
		}
		p := newPast(w.Rules[s.Rule])
		notFinite := func(v float64) bool { return !isFinite(v) }
		if len(s.Past) > p.values.window() || s.Row < 0 || slices.ContainsFunc(s.Past, notFinite) {
			return inputError("train: a watch remembers %d values of %q, %s, and %d steps in a row: "+
				"want at most %d finite values, and no negative number", len(s.Past), s.Tensor, s.Op, s.Row, p.values.window())
		}
		p.values.Past, p.row, p.first, p.last = s.Past, s.Row, s.First, s.Last
		past[watched{s.Rule, operand{s.Tensor, s.Op}}] = p
	}
	w.past, w.raised = past, nil
	return nil
}

func newPast(r Rule) *watchPast {
	return &watchPast{values: SpikeDetector{Window: r.Window, Least: r.Least, Threshold: r.Threshold}}
}
