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

// WriteText writes the goals and findings for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	title := fmt.Sprintf("%s (%v)", r.Title, r.Time.Round(100*time.Millisecond))
	b.WriteString(textout.Wrap(title, Columns, "") + "\n  " + TallyOf(r).String() + "\n")
	for _, g := range r.Goals {
		b.WriteString(g.text())
	}
	for _, f := range r.Findings {
		b.WriteString(hanging("-", 1, f.String()))
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

// text is the goal for a terminal.
func (g Goal) text() string {
	const widest = len("not judged")
	what := g.Name
	if g.Control {
		what = "control " + what
	}
	text := hanging(g.label(), widest, what+": "+g.Got) + hanging("", widest, "wanted: "+g.Want)
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
