package benchreport

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
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

// lineWidth is the number of characters that a line has at most, unless a group alone
// takes more.
const lineWidth = 80

// print writes the table: names of rows to the left, everything else to the right
// of its column, names of groups above their columns. Groups that a line has no room
// for follow below, with the rows that have a cell there.
func (t *crossTable) print(w io.Writer) error {
	for i, part := range t.split(lineWidth) {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := part.printLines(w); err != nil {
			return err
		}
	}
	return nil
}

// split returns tables of some of the groups, whose lines are not longer than width.
func (t *crossTable) split(width int) (parts []*crossTable) {
	left := widest(append([]string{t.corner}, t.rows...))
	free := 0
	for _, g := range t.groups {
		if len(parts) == 0 || g.width() > free {
			parts = append(parts, &crossTable{corner: t.corner})
			free = width - left
		}
		part := parts[len(parts)-1]
		part.groups = append(part.groups, g)
		free -= g.width()
	}
	for _, part := range parts {
		for _, row := range t.rows {
			if slices.ContainsFunc(part.groups, func(g *columnGroup) bool { return g.has(row) }) {
				part.rows = append(part.rows, row)
			}
		}
	}
	return parts
}

// has reports whether the group has a cell in a row.
func (g *columnGroup) has(row string) bool { return strings.TrimSpace(g.row(row)) != "" }

func (t *crossTable) printLines(w io.Writer) error {
	names := []string{t.corner}
	groups, columns := t.line(func(g *columnGroup) string { return g.name }), t.line((*columnGroup).names)
	lines := []string{groups}
	if strings.TrimSpace(columns) != "" {
		names, lines = append(names, ""), append(lines, columns)
	}
	for _, row := range t.rows {
		names = append(names, row)
		lines = append(lines, t.line(func(g *columnGroup) string { return g.row(row) }))
	}
	left := widest(names)
	for i, line := range lines {
		if _, err := fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-*s%s", left, names[i], line), " ")); err != nil {
			return err
		}
	}
	return nil
}

// line joins a text of each group.
func (t *crossTable) line(text func(*columnGroup) string) string {
	var line strings.Builder
	for _, g := range t.groups {
		fmt.Fprintf(&line, "%*s", g.width(), text(g))
	}
	return line.String()
}

// width is that of the group with the space before it.
func (g *columnGroup) width() int { return len("    ") + widest([]string{g.names(), g.name}) }

// names returns the names of the group's columns, in their places.
func (g *columnGroup) names() string {
	return g.join(func(c *column) string { return c.name })
}

// row returns the group's cells of a row, in their places.
func (g *columnGroup) row(name string) string {
	return g.join(func(c *column) string { return c.cells[name] })
}

func (g *columnGroup) join(text func(*column) string) string {
	var cells []string
	for _, c := range g.columns {
		cells = append(cells, fmt.Sprintf("%*s", c.width(), text(c)))
	}
	return strings.Join(cells, "  ")
}

func (c *column) width() int {
	texts := []string{c.name}
	for _, text := range c.cells {
		texts = append(texts, text)
	}
	return widest(texts)
}

func widest(texts []string) (width int) {
	for _, text := range texts {
		width = max(width, utf8.RuneCountInString(text))
	}
	return width
}
