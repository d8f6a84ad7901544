//go:build !js

package planning

import (
	"fmt"
	"io"
	"slices"

	"github.com/octavo-fp8/octavo/internal/jsonout"
	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
)

// Facts are published figures with what follows from them, as a table and bars.
type Facts struct {
	Title     string
	Columns   []string
	Rows      [][]string // the first column is text, the others numbers
	Sentences []string
	Chart     chart.Chart
	JSON      any
}

// WriteText prints the table and the sentences.
func (f Facts) WriteText(stdout io.Writer) error {
	w := textout.NewWriter(stdout)
	writeRows(w, f.Columns, f.Rows)
	fmt.Fprintln(w)
	for _, line := range f.Sentences {
		textout.Paragraph(w, line, "")
	}
	return w.Flush()
}

// WriteJSON prints the facts for programs.
func (f Facts) WriteJSON(w io.Writer) error { return jsonout.Print(w, f.JSON) }

// WritePage writes the facts as a page. command is what repeats it, on the given machine.
func (f Facts) WritePage(w io.Writer, command, machine string) error {
	var p page.Page
	p.Put("<h1>%s</h1>\n", f.Title)
	frame.Each(&p.Body, "<p>%s</p>\n", f.Sentences)
	p.Charts(f.Chart)
	columns := append(frame.Columns("", f.Columns[0]), frame.Columns(frame.Number, f.Columns[1:]...)...)
	p.Table(frame.Table{Label: f.Title, Columns: columns, Rows: frame.Rows(f.Rows, page.Cells)})
	p.Repeat(command, machine)
	return p.Write(w, f.Title)
}

// addBar adds a bar of a series at a label.
func addBar(c *chart.Chart, series, label string, value float64) {
	x := slices.Index(c.Labels, label)
	if x < 0 {
		x = len(c.Labels)
		c.Labels = append(c.Labels, label)
	}
	i := slices.IndexFunc(c.Series, func(s chart.Series) bool { return s.Name == series })
	if i < 0 {
		i = len(c.Series)
		c.Series = append(c.Series, chart.Series{Name: series, Mark: chart.Bars})
	}
	s := &c.Series[i]
	s.Points = append(s.Points, chart.Point{X: float64(x), Y: value, Name: series})
}
