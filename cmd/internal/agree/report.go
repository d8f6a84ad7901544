package agree

import (
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
)

// Report is what was found.
type Report struct {
	Model   string   `json:"model"`
	Outcome string   `json:"outcome"` // "pass", "fail" or "undecided"
	Sides   [2]Side  `json:"sides"`
	Modules []Module `json:"modules"`
	// First is the first module in which the two have the same input and another output.
	First     string      `json:"first,omitempty"`
	NotJudged []NotJudged `json:"notJudged"`
	Next      *Next       `json:"nextToken,omitempty"`

	refused int // layers of dumps that cannot be judged
}

// Side is an engine.
type Side struct {
	Dump    string   `json:"dump"`
	Engine  string   `json:"engine,omitempty"`
	Recipe  string   `json:"recipe"`
	Exclude []string `json:"exclude,omitempty"`
	Modules int      `json:"modules"`
}

// Module is a linear layer.
type Module struct {
	Name string `json:"name"`
	// Input and Output compare what was recorded, bit for bit: "same", "differ", or "" where
	// one side alone has it.
	Input  string     `json:"input"`
	Output string     `json:"output"`
	Sides  [2]*Judged `json:"sides"`
}

// Judged is a module as an engine ran it.
type Judged struct {
	*agree.Verdict
	Fused    string `json:"fused,omitempty"` // the module of the dump that it is a part of
	Excluded string `json:"excluded,omitempty"`
	Note     string `json:"note,omitempty"`
}

// NotJudged is what nothing is said of, and why.
type NotJudged struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// decide sums up the modules.
func (r *Report) decide() {
	count := func(outcome string) int { return r.Count(0, outcome) + r.Count(1, outcome) }
	switch {
	case count(verdict.Fail) > 0:
		r.Outcome = verdict.Fail
	case count(verdict.Undecided)+r.refused > 0 || count(verdict.Pass) == 0:
		r.Outcome = verdict.Undecided
	default:
		r.Outcome = verdict.Pass
	}
}

// Count returns how many modules of a side have an outcome.
func (r *Report) Count(side int, outcome string) (n int) {
	for _, m := range r.Modules {
		if d := m.Sides[side]; d != nil && d.Outcome == outcome {
			n++
		}
	}
	return n
}
