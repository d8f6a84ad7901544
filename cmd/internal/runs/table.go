package runs

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// WriteText writes the runs side by side for people.
func (s *Set) WriteText(stdout io.Writer) error {
	w := textout.NewWriter(stdout)
	if len(s.Train) > 0 {
		s.writeTrain(w)
	}
	if len(s.Train) > 0 && len(s.Lab) > 0 {
		fmt.Fprintln(w)
	}
	if len(s.Lab) > 0 {
		s.writeLab(w)
	}
	return w.Flush()
}

func (s *Set) writeTrain(w io.Writer) {
	if notes := s.said(); len(notes) > 0 {
		for _, note := range notes {
			textout.Paragraph(w, note, "")
		}
		fmt.Fprintln(w)
	}
	table := textout.NewTable(w)
	fmt.Fprintf(table, "train\tsteps\tFP32\t%s\tgap %%\theld out %%\tspikes\tskips\ttime\n", s.MultipliesIn())
	for _, t := range s.Train {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d/%d\t%d/%d\t%s\n", textout.Name(t.Name), t.StepsText(),
			textout.WrongIf(t.FP32.Loss-t.FP32.Loss != 0, loss(t.FP32.Loss)), textout.WrongIf(t.FP8.Loss-t.FP8.Loss != 0, loss(t.FP8.Loss)), gap(t.Gap), gap(t.HeldOutGap),
			t.FP32.Spikes, t.FP8.Spikes, t.FP32.Skips, t.FP8.Skips, short(t.FP32.Time+t.FP8.Time))
	}
	table.Flush()
	fmt.Fprintln(w)
	textout.Paragraph(w, "Losses are means of the last tenth of the steps. Spikes and skipped steps are those of FP32/"+s.MultipliesIn()+", the time is that of both.", "")
	fmt.Fprintln(w)
	s.writeOptions(w)
}

// writeOptions says in which options the runs differ, and which they have in common.
func (s *Set) writeOptions(w io.Writer) {
	differ := s.Differences()
	if len(differ) > 0 {
		table := textout.NewTable(w)
		fmt.Fprint(table, "what differs")
		for _, name := range differ {
			fmt.Fprintf(table, "\t%s", textout.Name(name))
		}
		for _, t := range s.Train {
			fmt.Fprintf(table, "\n%s", textout.Name(t.Name))
			for _, name := range differ {
				fmt.Fprintf(table, "\t%s", t.OptionText(name))
			}
		}
		table.Flush()
		fmt.Fprintln(w)
	}
	var common []string
	for _, name := range s.optionNames() {
		if !slices.Contains(differ, name) {
			common = append(common, name)
		}
	}
	head := "The same in all: "
	if len(s.Train) == 1 {
		head = "Options: "
	}
	textout.Paragraph(w, head+s.Train[0].list(common)+".", "")
}

// list returns options as a sentence has them.
func (t Train) list(options []string) string {
	var list []string
	for _, name := range options {
		list = append(list, textout.Name(name)+"="+t.OptionText(name))
	}
	return strings.Join(list, ", ")
}

// OptionText returns the value of an option for people.
func (t Train) OptionText(name string) string {
	if value := t.Option(name); value != "" {
		return textout.Name(value)
	}
	return "not known"
}

// openNote says what the columns of experiments mean.
const openNote = "Open are goals that are undecided, the interval being on both sides of a limit, or not " +
	"judged, for too small a sample. Caught are controls."

func (s *Set) writeLab(w io.Writer) {
	table := textout.NewTable(w)
	fmt.Fprintln(table, "lab\texperiment\tgoals met\topen\tcaught\tlength\tseed\ttime")
	for _, name := range s.experiments() {
		for _, l := range s.Lab {
			if e := l.Experiment(name); e != nil {
				fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\n", textout.Name(l.Name), textout.Name(e.Name),
					textout.WrongIf(e.Count(Missed) > 0, e.MetOf()), e.Undecided()+e.NotJudged(), textout.WrongIf(e.CountControls(NotCaught) > 0, e.CaughtOf()), e.Length, e.Seed, short(e.Time))
			}
		}
	}
	table.Flush()
	fmt.Fprintln(w)
	textout.Paragraph(w, openNote, "")
	for _, c := range s.Comparisons() {
		if len(c.Runs) > 1 {
			fmt.Fprintln(w)
			c.write(w)
		}
	}
}

// MetOf says how many of the goals that were judged were met.
func (e Experiment) MetOf() string {
	return fmt.Sprintf("%d of %d", e.Count(Met), e.Count(Met)+e.Count(Missed)+e.Count(Undecided))
}

// CaughtOf says how many of the controls were caught; "-" if there are none.
func (e Experiment) CaughtOf() string {
	if e.controls() == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", e.CountControls(Caught), e.controls())
}

func (e Experiment) controls() (n int) {
	for _, g := range e.Goals {
		if g.Control {
			n++
		}
	}
	return n
}

// Undecided returns how many goals' intervals were on both sides of a limit.
func (e Experiment) Undecided() int { return e.Count(Undecided) }

// NotJudged returns how many goals the run was too short for.
func (e Experiment) NotJudged() int { return e.Count(NotJudged) }

// write lists what became of each goal in each run.
func (c Comparison) write(w io.Writer) {
	textout.Paragraph(w, textout.Line(c.Name+": "+c.Title), "")
	for _, g := range c.Goals {
		textout.Paragraph(w, textout.Line(g.What), "  ")
		for i, of := range g.Of {
			said := "no such goal"
			if of != nil {
				said = fmt.Sprintf("%s: %s (wanted: %s)", of.Shown(), of.Got, of.Want)
			}
			fmt.Fprintln(w, textout.Fold("    "+textout.Name(c.Runs[i])+": "+strings.Join(strings.Fields(textout.Line(said)), " "), textout.Width(w)))
		}
	}
}

// Shown returns the outcome as the pages of experiments have it.
func (g Goal) Shown() string {
	switch g.Outcome {
	case Missed, NotCaught:
		return strings.ToUpper(g.Outcome)
	}
	return g.Outcome
}

// Class is the style of the outcome on a page.
func (g Goal) Class() string {
	switch g.Outcome {
	case Met, Caught:
		return "met"
	case Missed, NotCaught:
		return "missed"
	}
	return "note"
}

// StepsText says how many steps were done, and of how many if not all.
func (t Train) StepsText() string {
	if t.Done < t.Steps {
		return fmt.Sprintf("%d/%d", t.Done, t.Steps)
	}
	return fmt.Sprint(t.Done)
}

// loss returns a loss, of seven characters at most.
func loss(x float64) string {
	if math.Abs(x) >= 100 {
		return fmt.Sprintf("%.2g", x)
	}
	return fmt.Sprintf("%.4f", x)
}

// gap returns a percentage with its sign, or a dash if there is none.
func gap(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case math.Abs(x) < 1000:
		return fmt.Sprintf("%+.3f", x)
	}
	return fmt.Sprintf("%+.2g", x)
}

// short returns a time in a few characters.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
