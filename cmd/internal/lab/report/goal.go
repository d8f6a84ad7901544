package report

import "fmt"

// Goal is a statement that can fail.
type Goal struct {
	What    string  `json:"what"` // is measured
	Want    string  `json:"want"`
	Got     string  `json:"got"`
	Outcome Outcome `json:"outcome"`

	atLength bool // what is wanted makes sense at full length only
}

// NewGoal returns a goal: what is measured, what is wanted, what came out, and whether that
// is what was wanted.
func NewGoal(what, want, got string, met bool) Goal {
	g := Goal{What: what, Want: want, Got: got, Outcome: Missed}
	if met {
		g.Outcome = Met
	}
	return g
}

// AtLength returns the goal as one that a short run does not judge: what is wanted is of
// models that have been trained for a while, or of more values than a short run has.
func (g Goal) AtLength() Goal {
	g.atLength = true
	return g
}

// Met reports whether the goal was met.
func (g Goal) Met() bool { return g.Outcome == Met }

// Outcome is what became of a goal.
type Outcome uint8

const (
	NotJudged Outcome = iota // the run was too short for it
	Met
	Missed
)

var outcomes = [...]string{NotJudged: "not judged", Met: "met", Missed: "missed"}

// String returns "met", "missed" or "not judged".
func (o Outcome) String() string { return outcomes[o] }

// MarshalText implements [encoding.TextMarshaler].
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Tally counts the goals of one or several reports.
type Tally struct {
	Met       int `json:"met"`
	Missed    int `json:"missed"`
	NotJudged int `json:"notJudged"`
}

// TallyOf counts the goals of reports.
func TallyOf(reports ...*Report) (t Tally) {
	for _, r := range reports {
		for _, g := range r.Goals {
			switch g.Outcome {
			case Met:
				t.Met++
			case Missed:
				t.Missed++
			default:
				t.NotJudged++
			}
		}
	}
	return t
}

// String says how many of the goals that were judged were met, and how many were not
// judged.
func (t Tally) String() string {
	text := fmt.Sprintf("%d of %d goals met", t.Met, t.Met+t.Missed)
	if t.NotJudged > 0 {
		text += fmt.Sprintf(", %d not judged: the run is short", t.NotJudged)
	}
	return text
}
