package runs

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/page"
)

// name is the attribute of cells of names.
const name = frame.Whole

// WritePage writes one page with all runs, which lies in a directory, so that it leads to
// the runs' own pages. command is what repeats it.
func (s *Set) WritePage(w io.Writer, dir, command, machine string) error {
	var p page.Page
	title, all := "One run", s.runs()
	if n := len(all); n > 1 {
		title = fmt.Sprintf("%d runs side by side", n)
	}
	p.Put("<h1>%s</h1>\n", title)
	if len(s.Train) > 0 {
		s.putTrain(&p, dir)
	}
	if len(s.Lab) > 0 {
		s.putLab(&p, dir)
	}
	p.Put("<h2>The runs</h2>\n")
	for _, r := range all {
		p.Put("<p><strong>%s</strong>: <code>%s</code><br><span class=\"note\">%s</span></p>\n", r.Name, r.Command, r.Machine)
	}
	p.Repeat(command, machine)
	return p.Write(w, title)
}

// putTrain adds the runs that trained models.
func (s *Set) putTrain(p *page.Page, dir string) {
	model, differ := s.MultipliesIn(), s.Differences()
	p.Put("<h2>Trained in FP32 and in %s</h2>\n", s.in())
	said := s.said()
	found := len(said) - len(s.Notes())
	frame.Each(&p.Body, "<p><strong>%s</strong></p>\n", said[:found])
	frame.Each(&p.Body, "<p>%s</p>\n", said[found:])
	charts := s.charts()
	p.Charts(charts[0])
	t := frame.Table{Columns: slices.Concat(frame.Columns(name, "run"), frame.Columns(frame.Number,
		"steps", "loss FP32", "loss "+model, "gap, %", "held-out gap, %", "spikes", "skips", "time"))}
	for _, of := range s.Train {
		row := []any{linked(cmp.Or(wayTo(dir, of.Run, trainPage), wayTo(dir, of.Run, livePage)), of.Name)}
		steps := frame.Format("%s", of.StepsText())
		if of.Stopped() {
			steps = frame.Format("<span class=\"bad\">%s</span>", steps)
		}
		t.Rows = append(t.Rows, append(row, steps, loss(of.FP32.Loss), loss(of.FP8.Loss), gap(of.Gap), gap(of.HeldOutGap),
			fmt.Sprintf("%d/%d", of.FP32.Spikes, of.FP8.Spikes), fmt.Sprintf("%d/%d", of.FP32.Skips, of.FP8.Skips), short(of.FP32.Time+of.FP8.Time)))
	}
	p.Table(t)
	p.Put("<p class=\"note\">Losses are means of the last tenth of the steps. Spikes and skipped steps are those of FP32/%s, the time is that of both.</p>\n", model)
	if len(differ) > 0 {
		s.putDiffering(p, differ)
	}
	common := slices.DeleteFunc(s.optionNames(), func(option string) bool { return slices.Contains(differ, option) })
	what := "The same in all"
	if len(s.Train) == 1 {
		what = "Options"
	}
	p.Put("<p>%s: %s.</p>\n", what, s.Train[0].list(common))
	p.Charts(charts[1:]...)
	if note := s.thinned(); note != "" {
		p.Put("<p class=\"note\">%s</p>\n", note)
	}
}

// putDiffering adds the options in which the runs of train differ.
func (s *Set) putDiffering(p *page.Page, differ []string) {
	t := frame.Table{Columns: slices.Concat(frame.Columns(name, "run"), frame.Columns(name, differ...))}
	for _, of := range s.Train {
		row := []any{of.Name}
		for _, option := range differ {
			text := frame.Format("%s", of.OptionText(option))
			if of.Option(option) != s.Train[0].Option(option) {
				text = frame.Format("<mark>%s</mark>", text)
			}
			row = append(row, text)
		}
		t.Rows = append(t.Rows, row)
	}
	p.Put("<h3>What differs</h3>\n")
	p.Table(t)
	p.Put("<p class=\"note\">What is not as in the first run is marked.</p>\n")
}

// putLab adds the runs of the lab.
func (s *Set) putLab(p *page.Page, dir string) {
	comparisons := s.Comparisons()
	p.Put("<h2>Experiments of the lab</h2>\n")
	t := frame.Table{Columns: slices.Concat(frame.Columns(name, "experiment", "run"), frame.Columns(frame.Number, "goals met", "undecided", "not judged", "controls caught"),
		frame.Columns("", "length"), frame.Columns(frame.Number, "seed", "time"))}
	disagree := false
	for _, c := range comparisons {
		disagree = disagree || slices.ContainsFunc(c.Goals, GoalOfRuns.Differ)
		for i, e := range c.Done {
			t.Rows = append(t.Rows, []any{c.Name, linked(wayTo(dir, c.In[i].Run, e.Page), c.In[i].Name), e.MetOf(), e.Undecided(), e.NotJudged(), e.CaughtOf(), e.Length, e.Seed, short(e.Time)})
		}
	}
	p.Table(t)
	if disagree {
		p.Put("<p class=\"note\">A goal is marked that some runs met and others missed.</p>\n")
	}
	for _, c := range comparisons {
		if len(c.Runs) == 1 {
			p.Put("<details><summary>%s: %s</summary>\n", c.Name, c.Title)
			c.putGoals(p)
			p.Put("</details>\n")
			continue
		}
		p.Put("<h3>%s: %s</h3>\n", c.Name, c.Title)
		c.putGoals(p)
	}
}

// putGoals adds the goals of an experiment, in each run.
func (c Comparison) putGoals(p *page.Page) {
	if len(c.Goals) == 0 {
		p.Put("<p class=\"note\">It has no goals.</p>\n")
		return
	}
	t := frame.Table{Columns: append(frame.Columns("", "goal", "wanted"), frame.Columns("", c.Runs...)...)}
	for _, g := range c.Goals {
		row := []any{g.What, g.Want()}
		if g.Differ() {
			row[0] = frame.Format("<mark>%s</mark>", g.What)
		}
		for _, of := range g.Of {
			if of == nil {
				row = append(row, frame.HTML("<span class=\"note\">no such goal</span>"))
			} else {
				row = append(row, frame.Format("<span class=\"%s\">%s</span> %s", of.Class(), of.Shown(), of.Got))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	p.Table(t)
}

// linked returns a text that leads to an address, or nowhere if that is "".
func linked(address, text string) frame.HTML {
	if address == "" {
		return frame.Format("%s", text)
	}
	return frame.Format("<a href=\"%s\">%s</a>", address, text)
}

// wayTo returns the way from a page in a directory to a file of a run, or "" if there is none.
func wayTo(dir string, r Run, name string) string {
	if name == "" || !slices.Contains(r.Files, name) {
		return ""
	}
	from, errFrom := filepath.Abs(dir)
	to, errTo := filepath.Abs(r.path(name))
	way, err := filepath.Rel(from, to)
	if errFrom != nil || errTo != nil || err != nil {
		return ""
	}
	return (&url.URL{Path: filepath.ToSlash(way)}).String()
}
