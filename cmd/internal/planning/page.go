package planning

import (
	"fmt"
	"io"
	"strconv"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
)

// mostRows is how many stages a page shows at most.
const mostRows = 256

// WritePage writes the report as a page. command is what repeats it, on the given machine.
func (r *Report) WritePage(w io.Writer, command, machine string) error {
	var p page.Page
	title := "What " + r.ModelName() + " takes"
	p.Put("<h1>%s</h1>\n<p>%s %s %s</p>\n", title, r.ModelText(), r.LayoutText(), r.JobText())
	frame.Each(&p.Body, "<p>%s</p>\n", r.Sentences())
	p.Charts(r.KindChart())
	if len(r.Stages) > 1 {
		p.Charts(r.StageChart())
	}
	if r.HasClasses() {
		p.Charts(r.ClassChart())
	}
	p.Put("<h2>GiB on a rank of each stage</h2>\n")
	columns, rows := r.Table()
	p.Table(numbers("Memory by stage and kind", columns, rows))
	p.Put("<p class=\"note\">All ranks of a stage need the same, the load of experts being balanced. Activations are kept from the forward to the backward pass; workspace is what lives within a step of the computation, and what the library keeps beside it, when the rank needs most.</p>\n")
	if r.HasClasses() {
		p.Put("<h2>GiB kept of a micro-batch, by class</h2>\n")
		columns, rows := r.ClassTable()
		p.Table(numbers("Activations by stage and class", columns, rows))
		p.Put("<p class=\"note\">Classes are those of nn.Policy; stream is what each layer is given, with a number a row of its norms, and head the last norm, logits and loss. Shared is memory that layers take turns in for what they do not keep. Operations are those of a micro-batch on a rank; again is the share of them that the backward pass does once more.</p>\n")
	}
	p.Repeat(command, machine)
	return p.Write(w, title)
}

// numbers returns a table of stages.
func numbers(label string, columns []string, rows [][]string) frame.Table {
	rows = rows[:min(len(rows), mostRows)]
	return frame.Table{Label: label, Columns: frame.Columns(frame.Number, columns...), Rows: frame.Rows(rows, page.Cells)}
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
