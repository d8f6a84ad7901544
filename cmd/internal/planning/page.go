package planning

import (
	"fmt"
	"strconv"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
)

// mostRows is how many stages a page shows at most.
const mostRows = 256

// putHead adds what was found, and of what.
func (r *Report) putHead(p *page.Page) {
	class := ""
	switch {
	case len(r.TooLarge) > 0:
		class = " class=\"bad\""
	case r.Headroom != nil:
		class = " class=\"met\""
	}
	p.Put("<h1%s>%s</h1>\n", frame.HTML(class), r.Outcome())
	frame.Each(&p.Body, "<p>%s</p>\n", r.Findings())
	p.Put("<p>%s %s %s</p>\n", r.ModelText(), r.LayoutText(), r.JobText())
}

// putMain adds what the finding follows from.
func (r *Report) putMain(p *page.Page) {
	p.Charts(r.StageChart())
	frame.Each(&p.Body, "<p>%s</p>\n", r.Sentences())
	if r.HasClasses() {
		p.Charts(r.ClassChart())
	}
	p.Put("<h2>GiB on a rank of each stage</h2>\n")
	columns, rows := r.Table()
	p.Table(numbers("Memory by stage and kind", columns, rows))
	if n := len(rows); n > mostRows {
		p.Put("<p class=\"note\">Tables and charts have the first %s of %s stages; all are in what plan prints, and with --json.</p>\n", mostRows, n)
	}
	p.Put("<p class=\"note\">All ranks of a stage need the same, the load of experts being balanced. Activations are kept from the forward to the backward pass; workspace is what lives within a step of the computation, and what the library keeps beside it, when the rank needs most.</p>\n")
	if r.HasClasses() {
		p.Put("<h2>GiB kept of a micro-batch, by class</h2>\n")
		columns, rows := r.ClassTable()
		p.Table(numbers("Activations by stage and class", columns, rows))
		p.Put("<p class=\"note\">Classes are those of nn.Policy; stream is what each layer is given, with a number a row of its norms, and head the last norm, logits and loss. Shared is memory that layers take turns in for what they do not keep. Operations are those of a micro-batch on a rank; again is the share of them that the backward pass does once more.</p>\n")
	}
}

// numbers returns a table of stages.
func numbers(label string, columns []string, rows [][]string) frame.Table {
	rows = rows[:min(len(rows), mostRows)]
	return frame.Table{Label: label, Columns: frame.Columns(frame.Number, columns...), Rows: frame.Rows(rows, page.Cells)}
}

// mostLabels is how many stages have their number below their bar. Of more it is on an axis.
const mostLabels = 16

// StageChart has all kinds on a rank of each stage on each other, under what a card has.
func (r *Report) StageChart() chart.Chart {
	c := chart.Chart{
		Title: "Memory of a rank of each stage", X: "stage", Y: "GiB", Stacked: true,
		Description: "What a rank of each stage has of each kind, in GiB.",
	}
	stages := r.Stages[:min(len(r.Stages), mostRows)]
	if n := len(r.Stages); n > mostRows {
		c.Description += fmt.Sprintf(" The first %d of %d stages are shown.", mostRows, n)
	}
	add := func(name string, color chart.Key, of func(i int) int64) {
		bars := chart.Series{Name: name, Color: color, Mark: chart.Bars}
		for i := range stages {
			bars.Points = append(bars.Points, chart.Point{X: float64(i), Y: gib(of(i))})
		}
		c.Series = append(c.Series, bars)
	}
	for _, k := range r.kinds() {
		add(k.Name, "", func(i int) int64 { return k.of(stages[i]) })
	}
	if r.Headroom != nil {
		add("headroom for fragments", "grey", func(i int) int64 { return stages[i].Reserved(*r.Headroom) - stages[i].Total() })
		c.Lines = []chart.Reference{{Name: fmt.Sprintf("card of %g GiB", r.Card), Value: r.Card}}
	}
	for _, s := range stages {
		if len(stages) <= mostLabels {
			c.Labels = append(c.Labels, strconv.Itoa(s.Stage))
		}
	}
	return c
}
