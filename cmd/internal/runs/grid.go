package runs

import (
	"strings"
	"unicode/utf8"
)

// lineWidth is the number of columns of a terminal that lines fit into.
const lineWidth = 80

// grid is a table for a terminal. Its first column is of names. Where a line would be too
// long, columns stand closer and the name has a line of its own.
type grid struct {
	header []string
	rows   [][]string
	left   int // how many columns are flush left
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// String returns the table, with a line end after each line.
func (g *grid) String() string {
	lines := append([][]string{g.header}, g.rows...)
	widths := make([]int, len(g.header))
	figures := 0 // columns of a line that are not the name
	for i := range widths {
		for _, row := range lines {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
		if i > 0 {
			figures += widths[i]
		}
	}
	least := utf8.RuneCountInString(g.header[0])
	space := "  "
	if least+figures+len(space)*(len(widths)-1) > lineWidth {
		space = " "
	}
	widths[0] = min(widths[0], max(lineWidth-figures-len(space)*(len(widths)-1), least))
	var b strings.Builder
	for _, row := range lines {
		if name := row[0]; utf8.RuneCountInString(name) > widths[0] {
			b.WriteString(name + "\n")
			row = append([]string{""}, row[1:]...)
		}
		b.WriteString(g.line(row, widths, space) + "\n")
	}
	return b.String()
}

func (g *grid) line(row []string, widths []int, space string) string {
	var b strings.Builder
	for i, cell := range row {
		if i > 0 {
			b.WriteString(space)
		}
		fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if i < g.left {
			b.WriteString(cell + fill)
		} else {
			b.WriteString(fill + cell)
		}
	}
	return strings.TrimRight(b.String(), " ")
}
