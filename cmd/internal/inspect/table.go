package inspect

import (
	"fmt"
	"strings"
	"unicode/utf8"

	frame "github.com/octavo-fp8/octavo/internal/page"
)

// column is one of a table, of which text and pages have the same. R is what a row is about.
type column[R any] struct {
	name string
	left bool // cells begin at the left, and are no numbers
	cell func(R) string
}

// lines returns a table as text: the names of the columns, then a line for each row.
func lines[R any](columns []column[R], rows []R) []string {
	all := make([]strings.Builder, 1+len(rows))
	for _, c := range columns {
		cells := []string{c.name}
		for _, r := range rows {
			cells = append(cells, c.cell(r))
		}
		width := 0
		for _, cell := range cells {
			width = max(width, utf8.RuneCountInString(cell))
		}
		for i, cell := range cells {
			if all[i].Len() == 0 {
				all[i].WriteString(" ")
			}
			if c.left {
				fmt.Fprintf(&all[i], " %-*s", width, cell)
			} else {
				fmt.Fprintf(&all[i], " %*s", width, cell)
			}
		}
	}
	text := make([]string, len(all))
	for i := range all {
		text[i] = all[i].String()
	}
	return text
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
