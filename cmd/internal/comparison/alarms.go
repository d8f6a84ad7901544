package comparison

import (
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/train"
)

// mostAlarms is the number of them that the table lists.
const mostAlarms = 8

// writeAlarms writes which rules held and what was done, if any did.
func (r *Result) writeAlarms(w io.Writer) {
	if len(r.Alarms) == 0 {
		return
	}
	fmt.Fprintf(w, "\nRules that held, and what was done: %d\n", len(r.Alarms))
	for _, a := range r.Alarms[:min(len(r.Alarms), mostAlarms)] {
		paragraph(w, a.String())
	}
	if more := len(r.Alarms) - mostAlarms; more > 0 {
		fmt.Fprintf(w, "and %d more, which the page and result.json list.\n", more)
	}
}

// String says in which step which rule held, and what was done.
func (a Alarm) String() string {
	return fmt.Sprintf("%s, rule %d: %s: %s.", a.When(), a.Number(), a.What(), a.Done)
}

// Number is that of the rule in its file, from 1 on.
func (a Alarm) Number() int { return a.Rule + 1 }

// When names the step or steps.
func (a Alarm) When() string {
	if a.First == a.Step {
		return fmt.Sprintf("step %d", a.Step)
	}
	return fmt.Sprintf("steps %d to %d", a.First, a.Step)
}

// What says what was too much.
func (a Alarm) What() string {
	of := a.Of.Series.String()
	if a.Tensor != "" {
		of += fmt.Sprintf(" of %s, %s,", a.Tensor, a.Op)
	}
	return fmt.Sprintf("%s is %.3g, the median before is %.3g", of, a.Value, a.Median)
}

type alarmJSON struct {
	Rule   int            `json:"rule"` // from 1 on
	Series train.Series   `json:"series"`
	Action train.Action   `json:"action"`
	First  int64          `json:"firstStep"`
	Step   int64          `json:"step"`
	Tensor string         `json:"tensor,omitempty"`
	Op     string         `json:"op,omitempty"`
	Value  jsonout.Number `json:"value"`
	Median jsonout.Number `json:"median"` // of the values before it
	Score  jsonout.Number `json:"score"`
	Done   string         `json:"done"`
}

func (a Alarm) json() alarmJSON {
	return alarmJSON{
		a.Number(), a.Of.Series, a.Of.Action, a.First, a.Step, a.Tensor, a.Op,
		jsonout.Number(a.Value), jsonout.Number(a.Median), jsonout.Number(a.Score), a.Done,
	}
}
