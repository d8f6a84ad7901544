package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/jsonout"
)

// Goal is a statement that can fail and was declared before; see package declaration.
type Goal struct {
	What    string  `json:"what"` // is measured
	Want    string  `json:"want"`
	Got     string  `json:"got"`
	Outcome Outcome `json:"outcome"`

	Declared

	atLength bool // what is wanted makes sense at full length only
}

// Declared is what a goal was declared to be, before the run that judges it, and what was
// found.
type Declared struct {
	Name       string `json:"name"`
	Control    bool   `json:"control,omitempty"` // it must be caught
	Hypothesis string `json:"hypothesis"`
	Refuted    string `json:"refuted"` // what would refute it
	Unit       string `json:"unit,omitempty"`
	Test       string `json:"test"`
	Family     string `json:"family"`   // of goals that are judged on the same runs
	Compared   int    `json:"compared"` // goals in the family
	Reproduces string `json:"reproduces,omitempty"`
	Sample     int    `json:"sample,omitempty"` // values that were declared
	Power      string `json:"power,omitempty"`

	Found     *Found `json:"found,omitempty"` // nil: no interval belongs to it
	Undecided string `json:"undecided,omitempty"`
}

// Found is a mean, its interval, and of how many values they are.
type Found struct {
	Mean   jsonout.Number `json:"mean"`
	Low    jsonout.Number `json:"low"`
	High   jsonout.Number `json:"high"`
	Values int            `json:"values"`
}

// AtLength returns the goal as one that only a run of full length judges: what is wanted is
// of models that have been trained for a while, or of more values than others have.
func (g Goal) AtLength() Goal {
	g.atLength = true
	return g
}

// Met reports whether the goal was met.
func (g Goal) Met() bool { return g.Outcome == Met }

// Outcomes is a sentence, with a space before it, on what became of goals of the given names, in
// their order: " As declared: a is met, b is missed." Of those that are not judged it says
// nothing, and nothing at all if none is. It panics if there is none of a name.
func Outcomes(goals []Goal, lead string, names ...string) string {
	var all []string
	for _, name := range names {
		at := slices.IndexFunc(goals, func(g Goal) bool { return g.Name == name })
		if at < 0 {
			panic("report: there is no goal " + name)
		}
		if goals[at].Outcome != NotJudged {
			all = append(all, name+" is "+goals[at].Outcome.String())
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " " + lead + ": " + strings.Join(all, ", ") + "."
}

// Outcome is what became of a goal.
type Outcome uint8

const (
	NotJudged Outcome = iota // the run was too short for it
	Met
	Missed    // what was wanted is refuted
	Undecided // what was found is on both sides of a limit
	Caught    // a control is seen
	NotCaught // it is seen not to be there
)

var outcomes = [...]string{
	NotJudged: "not judged", Met: "met", Missed: "missed", Undecided: "undecided", Caught: "caught", NotCaught: "not caught",
}

// String returns "met", "missed", "undecided", "not judged", "caught" or "not caught".
func (o Outcome) String() string { return outcomes[o] }

// MarshalText implements [encoding.TextMarshaler].
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Tally counts the goals of one or several reports.
type Tally struct {
	Met       int      `json:"met"`
	Missed    int      `json:"missed"`
	Undecided int      `json:"undecided"`
	NotJudged int      `json:"notJudged"`
	Controls  Controls `json:"controls"`
}

// Controls counts those goals that must be caught.
type Controls struct {
	Caught    int `json:"caught"`
	NotCaught int `json:"notCaught"`
	Undecided int `json:"undecided"`
	NotJudged int `json:"notJudged"`
}

// TallyOf counts the goals of reports.
func TallyOf(reports ...*Report) (t Tally) {
	for _, r := range reports {
		for _, g := range r.Goals {
			*t.count(g)++
		}
	}
	return t
}

func (t *Tally) count(g Goal) *int {
	if g.Control {
		return [...]*int{Caught: &t.Controls.Caught, NotCaught: &t.Controls.NotCaught, Undecided: &t.Controls.Undecided, NotJudged: &t.Controls.NotJudged}[g.Outcome]
	}
	return [...]*int{Met: &t.Met, Missed: &t.Missed, Undecided: &t.Undecided, NotJudged: &t.NotJudged}[g.Outcome]
}

// String says how many of the goals that were judged were met, how many of the controls were
// caught, and how many of both were not judged.
func (t Tally) String() string {
	parts := []string{fmt.Sprintf("%d of %d goals met", t.Met, t.Met+t.Missed+t.Undecided)}
	add := func(count int, what string) {
		if count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, what))
		}
	}
	add(t.Undecided, "undecided")
	add(t.NotJudged, "not judged")
	text := strings.Join(parts, ", ")
	c := t.Controls
	if c == (Controls{}) {
		return text
	}
	parts = []string{fmt.Sprintf("%d of %d controls caught", c.Caught, c.Caught+c.NotCaught+c.Undecided)}
	add(c.Undecided, "undecided")
	add(c.NotJudged, "not judged")
	return text + "; " + strings.Join(parts, ", ")
}

// Finding is what was measured, and what follows from it.
type Finding struct {
	Measured string // in words that are true whatever the numbers in them are
	Follows  []Conclusion

	atLength bool // something follows at full length only
}

// Conclusion is a sentence that the numbers choose.
type Conclusion struct {
	Holds     bool
	Then      string // what is said if it holds
	Otherwise string // and if it does not
}

// NewFinding returns a finding.
func NewFinding(measured string, follows ...Conclusion) Finding {
	return Finding{Measured: measured, Follows: follows}
}

// AtLength returns the finding as one from which nothing follows but in a run of full length:
// what does is about models that have been trained for a while, or more values than others
// have.
func (f Finding) AtLength() Finding {
	f.atLength = true
	return f
}

// If returns a conclusion. A condition on a figure that is not a number does not hold.
func If(holds bool, then, otherwise string) Conclusion {
	return Conclusion{Holds: holds, Then: then, Otherwise: otherwise}
}

// String returns the sentence that the numbers choose.
func (c Conclusion) String() string {
	if c.Holds {
		return c.Then
	}
	return c.Otherwise
}

// String returns what was measured, followed by what it shows.
func (f Finding) String() string {
	all := []string{f.Measured}
	for _, c := range f.Follows {
		all = append(all, c.String())
	}
	return strings.Join(all, " ")
}
