package comparison

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/train"
)

// flightJSON is a [flight] in run.json, and what its rules have done. Steps that were not taken
// or were gone back over are not in it: a run goes back over no checkpoint.
type flightJSON struct {
	Rules   []ruleFile      `json:"rules,omitempty"`
	Watch   json.RawMessage `json:"watch"`
	Widened []string        `json:"widened,omitempty"`
	Alarms  []savedAlarm    `json:"alarms,omitempty"`
}

type savedAlarm struct {
	Rule   int         `json:"rule"`
	First  int64       `json:"first"`
	Step   int64       `json:"step"`
	Tensor string      `json:"tensor,omitempty"`
	Op     string      `json:"op,omitempty"`
	Value  exactNumber `json:"value"`
	Median exactNumber `json:"median"`
	Score  exactNumber `json:"score"`
	Done   string      `json:"done"`
}

// savedFlight returns what rules remember and have done; nil without any.
func (r *runner) savedFlight() (*flightJSON, error) {
	f := r.fp8.flight
	if f == nil {
		return nil, nil
	}
	watch, err := json.Marshal(&f.watch)
	if err != nil {
		return nil, err
	}
	saved := &flightJSON{Rules: rulesOf(f.watch.Rules), Watch: watch, Widened: slices.Clone(f.widened)}
	for _, a := range r.result.Alarms {
		saved.Alarms = append(saved.Alarms, savedAlarm{
			a.Rule, a.First, a.Step, a.Tensor, a.Op,
			exactNumber(a.Value), exactNumber(a.Median), exactNumber(a.Score), a.Done,
		})
	}
	return saved, nil
}

func rulesOf(rules []train.Rule) (all []ruleFile) {
	for _, r := range rules {
		all = append(all, ruleFile(r))
	}
	return all
}

// checkRules returns an error unless r has the rules that a run was saved with.
func (r *runner) checkRules(dir string, saved *flightJSON) error {
	var was []ruleFile
	if saved != nil {
		was = saved.Rules
	}
	if slices.Equal(rulesOf(r.result.Options.Rules), was) {
		return nil
	}
	if len(was) == 0 {
		return differs{fmt.Errorf("--rules: %s was saved without rules: leave it out", dir)}
	}
	return differs{fmt.Errorf("--rules: they are not the %d rules that %s was saved with: "+
		"leave it out, and the file as it was, or give the same", len(was), dir)}
}

// restoreFlight gives rules what they remembered, and the FP8 model the formats that they
// gave it.
func (r *runner) restoreFlight(saved *flightJSON) error {
	f := r.fp8.flight
	if f == nil || saved == nil {
		return nil
	}
	model, err := widenedAgain(f.first, saved.Widened)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(saved.Watch, &f.watch); err != nil {
		return fmt.Errorf("%s: %w", runFile, err)
	}
	var alarms []Alarm
	for _, a := range saved.Alarms {
		if a.Rule < 0 || a.Rule >= len(f.watch.Rules) {
			return fmt.Errorf("%s: an alarm in step %d is of rule %d: there are %d", runFile, a.Step, a.Rule+1, len(f.watch.Rules))
		}
		alarms = append(alarms, Alarm{Of: f.watch.Rules[a.Rule], Done: a.Done, Alarm: train.Alarm{
			Rule: a.Rule, First: a.First, Step: a.Step, Tensor: a.Tensor, Op: a.Op,
			Value: float64(a.Value), Median: float64(a.Median), Score: float64(a.Score),
		}})
	}
	r.fp8.Model, r.result.ModelFP8, r.result.Alarms = model, model, alarms
	f.widened = saved.Widened
	return nil
}

// widenedAgain widens a model for one operand after another.
func widenedAgain(m *nn.Llama, operands []string) (*nn.Llama, error) {
	for _, operand := range operands {
		wide, _, err := m.Widen(operand)
		if err != nil {
			return nil, fmt.Errorf("%s: widening %q: %w", runFile, operand, err)
		}
		m = wide
	}
	return m, nil
}
