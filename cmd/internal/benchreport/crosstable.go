package benchreport

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// crossTable is a table of named rows and of columns in named groups. All come in
// the order in which they are first put.
type crossTable struct {
	corner string // above the names of rows
	rows   []string
	groups []*columnGroup
}

type columnGroup struct {
	name    string
	columns []*column
}

type column struct {
	name  string
	cells map[string]string // by row
}

// put fills a cell. A column's name may be "".
func (t *crossTable) put(row, group, column, text string) {
	if !slices.Contains(t.rows, row) {
		t.rows = append(t.rows, row)
	}
	t.group(group).column(column).cells[row] = text
}

func (t *crossTable) group(name string) *columnGroup {
	for _, g := range t.groups {
		if g.name == name {
			return g
		}
	}
	g := &columnGroup{name: name}
	t.groups = append(t.groups, g)
	return g
}

func (g *columnGroup) column(name string) *column {
	for _, c := range g.columns {
		if c.name == name {
			return c
		}
	}
	c := &column{name, make(map[string]string)}
	g.columns = append(g.columns, c)
	return c
}

// print writes the table: names of groups above those of their columns.
func (t *crossTable) print(w io.Writer) error {
	table := textout.NewTable(w)
	fmt.Fprint(table, t.corner)
	for _, g := range t.groups {
		for _, c := range g.columns {
			fmt.Fprintf(table, "\t%s", strings.TrimSuffix(g.name+"\v"+c.name, "\v"))
		}
	}
	fmt.Fprintln(table)
	for _, row := range t.rows {
		fmt.Fprint(table, row)
		for _, g := range t.groups {
			for _, c := range g.columns {
				fmt.Fprintf(table, "\t%s", c.cells[row])
			}
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}
