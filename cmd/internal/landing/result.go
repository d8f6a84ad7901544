package landing

import (
	"fmt"
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// Result is what came of computing an operator again.
type Result struct {
	Cause    string  `json:"cause"`
	Step     int     `json:"step"`
	Operator string  `json:"operator"`
	Op       string  `json:"op"`
	Found    string  `json:"found"`
	Level    string  `json:"level"` // of this machine
	Same     bool    `json:"same"`
	Checks   []Check `json:"checks"`

	NotJudged []string `json:"notJudged,omitempty"` // operands of which codes alone were kept
}

// WriteText writes the verdict for a terminal.
func (v *Result) WriteText(w io.Writer) error {
	lines := []string{
		v.headline(),
		"It stopped: " + v.Cause + ".",
		fmt.Sprintf("Operator: %s, %s, in step %d.", v.Operator, v.Op, v.Step),
		"In it: " + v.Found + ".",
	}
	for _, c := range v.Checks {
		if c.Same() {
			lines = append(lines, fmt.Sprintf("same bits: %s, %d of %d", c.What, c.Elements, c.Elements))
			continue
		}
		lines = append(lines, fmt.Sprintf("OTHER BITS: %s, %d of %d; the first is element %d, which was %s and is %s",
			c.What, c.Differ, c.Elements, c.First, c.Was, c.Is))
	}
	if len(v.NotJudged) > 0 {
		lines = append(lines, "not judged, since codes alone were kept: how "+strings.Join(v.NotJudged, " and ")+" was quantized")
	}
	for _, line := range append(lines, "Computed at level "+v.Level+".") {
		if err := textout.Paragraph(w, line, "  "); err != nil {
			return err
		}
	}
	return nil
}

// headline says whether the product came out again as in the run.
func (v *Result) headline() string {
	said := "Reproduced: computed again, the product has the bits of the run in all that was compared"
	if failure := v.Failure(); failure != "" {
		said = "NOT REPRODUCED: computed again, " + failure
	}
	return said + "."
}

// Failure says what differs, or "" where nothing does.
func (v *Result) Failure() string {
	for _, c := range v.Checks {
		if !c.Same() {
			return fmt.Sprintf("%s: %d of %d differ from those of the run", c.What, c.Differ, c.Elements)
		}
	}
	return ""
}
