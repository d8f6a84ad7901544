package runs

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/page"
)

//go:embed page.html
var pageSource string

var pageTemplate = page.New("runs", pageSource, template.FuncMap{
	"loss": loss, "gap": gap, "short": func(d time.Duration) string { return short(d) }, "sum": func(a, b time.Duration) time.Duration { return a + b },
})

// pageData is what the page is made of.
type pageData struct {
	*Set
	Differ      []string
	Common      string
	Charts      []chart.Chart
	Thinned     string
	Comparisons []Comparison
	Command     string
	Machine     string
	All         []Run

	dir string // of the page
}

// WritePage writes one page with all runs, which lies in a directory, so that it leads to
// the runs' own pages. command is what repeats it.
func (s *Set) WritePage(w io.Writer, dir, command, machine string) error {
	d := pageData{
		Set: s, Differ: s.Differences(), Charts: s.charts(), Thinned: s.thinned(), Comparisons: s.Comparisons(),
		Command: command, Machine: machine, All: s.runs(), dir: dir,
	}
	if len(s.Train) > 0 {
		var common []string
		for _, name := range s.optionNames() {
			if !slices.Contains(d.Differ, name) {
				common = append(common, name)
			}
		}
		d.Common = s.Train[0].list(common)
	}
	return pageTemplate.Write(w, d.Title(), d)
}

// Title is that of the page.
func (d pageData) Title() string {
	if n := len(d.All); n > 1 {
		return fmt.Sprintf("%d runs side by side", n)
	}
	return "One run"
}

// Unlike reports whether an option of a run is not that of the first run.
func (d pageData) Unlike(t Train, option string) bool {
	return t.Option(option) != d.Train[0].Option(option)
}

// Disagree reports whether a goal was met in some runs and missed in others.
func (d pageData) Disagree() bool {
	return slices.ContainsFunc(d.Comparisons, func(c Comparison) bool { return slices.ContainsFunc(c.Goals, GoalOfRuns.Differ) })
}

// TrainPage returns the way to a run's own page, or "" if it has none.
func (d pageData) TrainPage(t Train) string { return d.link(t.Run, trainPage) }

// LabPage returns the way to an experiment's own page, or "" if it has none.
func (d pageData) LabPage(l Lab, e *Experiment) string { return d.link(l.Run, e.Page) }

// link returns the way from the page to a file of a run.
func (d pageData) link(r Run, name string) string {
	if name == "" || !slices.Contains(r.Files, name) {
		return ""
	}
	from, errFrom := filepath.Abs(d.dir)
	to, errTo := filepath.Abs(r.path(name))
	way, err := filepath.Rel(from, to)
	if errFrom != nil || errTo != nil || err != nil {
		return ""
	}
	return (&url.URL{Path: filepath.ToSlash(way)}).String()
}
