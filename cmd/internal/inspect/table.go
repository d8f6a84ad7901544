package inspect

import (
	"fmt"
	"io"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// column is one of a table, of which text and pages have the same. R is what a row is about.
type column[R any] struct {
	name string
	left bool // cells begin at the left, and are no numbers
	cell func(R) string
}

// textTable is a table as text, of which the names of columns are written.
func textTable[R any](w io.Writer, columns []column[R]) *textout.Table {
	t := textout.NewTable(w)
	for _, c := range columns {
		fmt.Fprintf(t, "%s\t", c.name)
	}
	fmt.Fprintln(t)
	return t
}

// writeRow writes a row of a table.
func writeRow[R any](t *textout.Table, columns []column[R], row R) {
	for _, c := range columns {
		fmt.Fprintf(t, "%s\t", c.cell(row))
	}
	fmt.Fprintln(t)
}

// pageTable returns a table for a page. The cells of the first column have remarks below them.
func pageTable[R any](label string, columns []column[R], rows []R, remarks func(R) []string) frame.Table {
	t := frame.Table{Label: label}
	for i, c := range columns {
		of := frame.Column{Name: c.name}
		switch {
		case i == 0:
			of.Attributes = frame.Name
		case !c.left:
			of.Attributes = frame.Number
		}
		t.Columns = append(t.Columns, of)
	}
	t.Rows = frame.Rows(rows, func(r R) (cells []any) {
		for _, c := range columns {
			cells = append(cells, c.cell(r))
		}
		for _, remark := range remarks(r) {
			cells[0] = frame.Format("%s<br><span class=\"note\">%s</span>", cells[0], remark)
		}
		return cells
	})
	return t
}
