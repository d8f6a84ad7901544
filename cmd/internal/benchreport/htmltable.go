package benchreport

import (
	"strings"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/page"
)

// putOn adds the table to a page.
func (t *crossTable) putOn(p *page.Page, label string) {
	of := frame.Table{Label: label, Class: "figures dense", Columns: frame.Columns(frame.Whole, "")}
	for _, g := range t.groups {
		for _, c := range g.columns {
			of.Columns = append(of.Columns, frame.Column{Name: strings.TrimSpace(g.name + " " + c.name), Attributes: frame.Number})
		}
	}
	for _, row := range t.rows {
		cells := []any{row}
		for _, g := range t.groups {
			for _, c := range g.columns {
				cells = append(cells, c.cells[row])
			}
		}
		of.Rows = append(of.Rows, cells)
	}
	p.Table(of)
}
