package planning

import (
	_ "embed"
	"fmt"
	"io"
	"strconv"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
	"github.com/octavo-fp8/octavo/cmd/internal/page"
)

//go:embed page.html
var pageSource string

var pageTemplate = page.New("plan", pageSource, nil)

// mostRows is how many stages a page shows at most.
const mostRows = 256

// pageData is what the page is made of.
type pageData struct {
	*Report
	Stages, Classes  table
	Command, Machine string
}

// table is one of a page.
type table struct {
	Columns []string
	Rows    [][]string
}

func newTable(columns []string, rows [][]string) table {
	return table{columns, rows[:min(len(rows), mostRows)]}
}

// WritePage writes the report as a page. command is what repeats it, on the given machine.
func (r *Report) WritePage(w io.Writer, command, machine string) error {
	d := pageData{r, newTable(r.Table()), table{}, command, machine}
	if r.HasClasses() {
		d.Classes = newTable(r.ClassTable())
	}
	return pageTemplate.Write(w, "What "+r.ModelName()+" takes", d)
}

// KindChart has a bar for each kind on a rank of the stage that needs most.
func (r *Report) KindChart() chart.Chart {
	s := r.Stages[r.Highest]
	c := chart.Chart{
		Title:       fmt.Sprintf("A rank of stage %d", s.Stage),
		Y:           "GiB",
		Description: fmt.Sprintf("What a rank of stage %d, which needs most, has of each kind, in GiB.", s.Stage),
	}
	bars := chart.Series{Name: "memory", Mark: chart.Bars, Color: "blue"}
	add := func(name string, bytes int64) {
		bars.Points = append(bars.Points, chart.Point{X: float64(len(c.Labels)), Y: gib(bytes), Name: name})
		c.Labels = append(c.Labels, name)
	}
	for _, k := range r.kinds() {
		add(k.Name, k.of(s))
	}
	add("total", s.Total())
	if r.Headroom != nil {
		add("reserved", s.Reserved(*r.Headroom))
	}
	c.Series = []chart.Series{bars}
	c.Lines = r.cardLine()
	return c
}

// mostBars is how many stages have bars for each kind side by side. More are lines.
const mostBars = 16

// StageChart has all kinds on a rank of each stage.
func (r *Report) StageChart() chart.Chart {
	c := chart.Chart{
		Title: "Stages", X: "stage", Y: "GiB", Lines: r.cardLine(), Zero: true,
		Description: "What a rank of each stage has of each kind, and altogether, in GiB.",
	}
	mark := chart.Bars
	if len(r.Stages) > mostBars {
		mark = chart.Joined
	}
	total := chart.Series{Name: "total", Mark: mark}
	for _, k := range r.kinds() {
		c.Series = append(c.Series, chart.Series{Name: k.Name, Mark: mark})
	}
	for i, s := range r.Stages {
		for n, k := range r.kinds() {
			c.Series[n].Points = append(c.Series[n].Points, chart.Point{X: float64(i), Y: gib(k.of(s)), Name: k.Name})
		}
		total.Points = append(total.Points, chart.Point{X: float64(i), Y: gib(s.Total()), Name: "total"})
		if mark == chart.Bars {
			c.Labels = append(c.Labels, strconv.Itoa(s.Stage))
		}
	}
	c.Series = append(c.Series, total)
	return c
}

// cardLine is what a card has, if that was said.
func (r *Report) cardLine() []chart.Reference {
	if r.Card == 0 {
		return nil
	}
	return []chart.Reference{{Name: fmt.Sprintf("card of %g GiB", r.Card), Value: r.Card}}
}
