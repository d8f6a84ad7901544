package runs

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// WriteText writes the runs side by side for a terminal of 80 columns.
func (s *Set) WriteText(w io.Writer) error {
	var parts []string
	if len(s.Train) > 0 {
		parts = append(parts, s.trainText())
	}
	if len(s.Lab) > 0 {
		parts = append(parts, s.labText())
	}
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

func (s *Set) trainText() string {
	g := grid{left: 1, header: []string{"train", "steps", "FP32", s.MultipliesIn(), "gap %", "held out %", "spikes", "skips", "time"}}
	for _, t := range s.Train {
		g.add(textout.Name(t.Name), t.StepsText(), loss(t.FP32.Loss), loss(t.FP8.Loss), gap(t.Gap), gap(t.HeldOutGap),
			fmt.Sprintf("%d/%d", t.FP32.Spikes, t.FP8.Spikes), fmt.Sprintf("%d/%d", t.FP32.Skips, t.FP8.Skips), short(t.FP32.Time+t.FP8.Time))
	}
	text := g.String() + "\n" + wrapped("", "Losses are means of the last tenth of the steps. Spikes and skipped steps are those of FP32/"+s.MultipliesIn()+", the time is that of both.")
	for _, note := range s.said() {
		text += wrapped("", note)
	}
	return text + "\n" + s.optionsText()
}

// optionsText says in which options the runs differ, and which they have in common.
func (s *Set) optionsText() (text string) {
	differ := s.Differences()
	if len(differ) > 0 {
		text = "What differs:\n"
		widest := 0
		for _, t := range s.Train {
			widest = max(widest, utf8.RuneCountInString(textout.Name(t.Name)))
		}
		widest = min(widest, lineWidth/3)
		for _, t := range s.Train {
			text += hanging(textout.Name(t.Name), widest, t.list(differ))
		}
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
	return text + wrapped("", head+s.Train[0].list(common)+".")
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

// hanging returns a name and behind it a text, in as many lines as that needs.
func hanging(name string, width int, text string) string {
	indent := strings.Repeat(" ", 2+width+2)
	body := textout.Wrap(text, lineWidth, indent)
	if n := utf8.RuneCountInString(name); n <= width {
		return "  " + name + strings.Repeat(" ", width-n) + "  " + strings.TrimPrefix(body, indent) + "\n"
	}
	return "  " + name + "\n" + body + "\n"
}

func wrapped(indent, text string) string { return textout.Wrap(text, lineWidth, indent) + "\n" }

// openNote says what the columns of experiments mean.
const openNote = "Open are goals that are undecided, the interval being on both sides of a limit, or not " +
	"judged, for too small a sample. Caught are controls."

func (s *Set) labText() string {
	g := grid{left: 2, header: []string{"lab", "experiment", "goals met", "open", "caught", "length", "seed", "time"}}
	for _, name := range s.experiments() {
		for _, l := range s.Lab {
			if e := l.Experiment(name); e != nil {
				g.add(textout.Name(l.Name), textout.Name(e.Name), e.MetOf(), fmt.Sprint(e.Undecided()+e.NotJudged()), e.CaughtOf(), e.Length, fmt.Sprint(e.Seed), short(e.Time))
			}
		}
	}
	text := g.String() + "\n" + wrapped("", openNote)
	for _, c := range s.Comparisons() {
		if len(c.Runs) > 1 {
			text += "\n" + c.text()
		}
	}
	return text
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

// text lists what became of each goal in each run.
func (c Comparison) text() string {
	text := wrapped("", textout.Line(c.Name+": "+c.Title))
	widest := 0
	for _, name := range c.Runs {
		widest = max(widest, utf8.RuneCountInString(textout.Name(name)))
	}
	widest = min(widest, lineWidth/3)
	for _, g := range c.Goals {
		text += wrapped("  ", textout.Line(g.What))
		for i, of := range g.Of {
			said := "no such goal"
			if of != nil {
				said = fmt.Sprintf("%s: %s (wanted: %s)", of.Shown(), of.Got, of.Want)
			}
			text += hanging("  "+textout.Name(c.Runs[i]), widest+2, textout.Line(said))
		}
	}
	return text
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
