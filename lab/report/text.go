package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// WriteText writes the findings and then the goals for a terminal.
func (r *Report) WriteText(to io.Writer) error {
	w := textout.NewWriter(to)
	textout.Paragraph(w, fmt.Sprintf("%s (%v)", r.Title, r.Time.Round(100*time.Millisecond)), "")
	for _, f := range r.Findings {
		hanging(w, "-", 1, f.String())
	}
	if tally := r.tally(); tally != "" {
		fmt.Fprintf(w, "  %s\n", tally)
	}
	for _, g := range r.Goals {
		r.writeGoal(w, g)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// hanging writes a text in lines that stand to the right of a label.
func hanging(w io.Writer, label string, width int, text string) {
	margin := fmt.Sprintf("  %-*s ", width, label)
	textout.Hanging(w, margin, text, len(margin))
}

// writeGoal writes a goal for a terminal.
func (r *Report) writeGoal(w io.Writer, g Goal) {
	label, widest, what := g.label(), len("not judged"), g.Name
	if g.Control {
		what = "control " + what
	}
	if r.Length != Full {
		widest = len("undecided")
	}
	if !r.saysOf(g) {
		label, g.Undecided = "", ""
	}
	hanging(w, label, widest, what+": "+g.Got)
	hanging(w, "", widest, "wanted: "+g.Want)
	if g.Undecided != "" {
		hanging(w, "", widest, g.Undecided)
	}
}

// label is the outcome as people see it from afar.
func (g Goal) label() string {
	switch g.Outcome {
	case Missed, NotCaught:
		return strings.ToUpper(g.Outcome.String())
	}
	return g.Outcome.String()
}
