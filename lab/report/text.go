package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// Columns of a terminal, at which text is wrapped.
const Columns = 80

// WriteText writes the findings and then the goals for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	title := fmt.Sprintf("%s (%v)", r.Title, r.Time.Round(100*time.Millisecond))
	b.WriteString(textout.Wrap(title, Columns, "") + "\n")
	for _, f := range r.Findings {
		b.WriteString(hanging("-", 1, f.String()))
	}
	if tally := r.tally(); tally != "" {
		b.WriteString("  " + tally + "\n")
	}
	for _, g := range r.Goals {
		b.WriteString(r.goal(g))
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// hanging returns a text in lines that stand to the right of a label.
func hanging(label string, width int, text string) string {
	margin := fmt.Sprintf("  %-*s ", width, label)
	lines := textout.Wrap(text, Columns, strings.Repeat(" ", len(margin)))
	return margin + lines[len(margin):] + "\n"
}

// goal is a goal for a terminal.
func (r *Report) goal(g Goal) string {
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
	text := hanging(label, widest, what+": "+g.Got) + hanging("", widest, "wanted: "+g.Want)
	if g.Undecided != "" {
		text += hanging("", widest, g.Undecided)
	}
	return text
}

// label is the outcome as people see it from afar.
func (g Goal) label() string {
	switch g.Outcome {
	case Missed, NotCaught:
		return strings.ToUpper(g.Outcome.String())
	}
	return g.Outcome.String()
}
