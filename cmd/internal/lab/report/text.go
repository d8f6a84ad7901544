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

// ShortNotice is what people are told of a short run before anything else.
const ShortNotice = "This is a short run (--short): it shows that the experiments work, and little more. " +
	"Its models are small and hardly trained. Goals that only a run of full length can meet are not judged, " +
	"and nothing is concluded from figures that need one."

// WriteText writes the goals and findings for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	title := fmt.Sprintf("%s (%v)", r.Title, r.Time.Round(100*time.Millisecond))
	b.WriteString(textout.Wrap(title, Columns, "") + "\n  " + TallyOf(r).String() + "\n")
	const widest = len("not judged")
	for _, g := range r.Goals {
		b.WriteString(hanging(g.label(), widest, g.What+": "+g.Got))
		b.WriteString(hanging("", widest, "wanted: "+g.Want))
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

// label is the outcome as people see it from afar.
func (g Goal) label() string {
	if g.Outcome == Missed {
		return "MISSED"
	}
	return g.Outcome.String()
}
