package runs

import (
	"strings"
	"unicode/utf8"
)

// lineWidth is the number of columns of a terminal that lines fit into.
const lineWidth = 80

// grid is a table for a terminal. Its first column, of names, is flush left. Where a line
// would be too long, the name has a line of its own.
type grid struct {
	header []string
	rows   [][]string
	left   int // how many columns are flush left
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// String returns the table, with spaces between columns and a line end after each line.
func (g *grid) String() string {
	widths := make([]int, len(g.header))
	others := 0
	for i := range widths {
		for _, row := range append([][]string{g.header}, g.rows...) {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		if i > 0 {
			others += len("  ") + widths[i]
		}
	}
	widths[0] = min(widths[0], max(lineWidth-others, utf8.RuneCountInString(g.header[0])))
	var b strings.Builder
	for _, row := range append([][]string{g.header}, g.rows...) {
		if name := row[0]; utf8.RuneCountInString(name) > widths[0] {
			b.WriteString(name + "\n")
			row = append([]string{""}, row[1:]...)
		}
		b.WriteString(g.line(row, widths) + "\n")
	}
	return b.String()
}

func (g *grid) line(row []string, widths []int) string {
	var b strings.Builder
	for i, cell := range row {
		if i > 0 {
			b.WriteString("  ")
		}
		space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if i < g.left {
			b.WriteString(cell + space)
		} else {
			b.WriteString(space + cell)
		}
	}
	return strings.TrimRight(b.String(), " ")
}
