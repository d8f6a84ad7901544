package page

import (
	"fmt"
	"html"
	"regexp"
	"strings"
)

// HTML is text that is put into a page as it is.
type HTML string

// Format is fmt.Sprintf of HTML. Values other than HTML are printed as fmt.Sprint does and escaped, so that they may
// be text and values of attributes in quotation marks. All verbs are %s.
func Format(format string, values ...any) HTML {
	escaped := make([]any, len(values))
	for i, v := range values {
		escaped[i] = escape(v)
	}
	return HTML(fmt.Sprintf(format, escaped...))
}

func escape(v any) HTML {
	if h, ok := v.(HTML); ok {
		return h
	}
	return HTML(html.EscapeString(fmt.Sprint(v)))
}

// Body is a part of a page under way. The zero value is empty.
type Body struct{ text strings.Builder }

// Put adds what [Format] returns.
func (b *Body) Put(format string, values ...any) {
	b.text.WriteString(string(Format(format, values...)))
}

// HTML returns what was added.
func (b *Body) HTML() HTML { return HTML(b.text.String()) }

// Each puts a value after another in the same way.
func Each[T any](b *Body, format string, values []T) {
	for _, v := range values {
		b.Put(format, v)
	}
}

// Repeat says how to repeat a run, and on which machine it was. Without a command it says
// nothing.
func (b *Body) Repeat(command, machine string) {
	if command == "" {
		return
	}
	b.Put("<h2>To repeat it</h2>\n<p><code>%s</code></p>\n", command)
	if machine != "" {
		b.Put("<p>%s.</p>\n", machine)
	}
}

// Table is a table of a page. One that is too wide for a phone has a card for each row there.
type Table struct {
	Label   string // what it is called for who cannot see it; such a table can be scrolled with keys
	Class   string // more than one with spaces between
	Columns []Column
	Rows    [][]any
}

// Column is one of a table.
type Column struct {
	Name       string
	Attributes HTML // of its cells
}

// Number, Name and Whole are attributes of cells: of numbers, of long names, and of what
// stays on one line.
const (
	Number HTML = ` class="number"`
	Name   HTML = ` class="long"`
	Whole  HTML = ` class="whole"`
)

// Columns returns columns of those attributes.
func Columns(attributes HTML, names ...string) (all []Column) {
	for _, name := range names {
		all = append(all, Column{name, attributes})
	}
	return all
}

// Table adds a table.
func (b *Body) Table(t Table) {
	label, class := HTML(""), HTML("")
	if t.Label != "" {
		label = Format(` tabindex="0" role="region" aria-label="%s"`, t.Label)
	}
	if t.wide() {
		class = Format(` class="%s" style="%s"`, strings.TrimSpace("cards "+t.Class), t.names())
	} else if t.Class != "" {
		class = Format(` class="%s"`, t.Class)
	}
	b.Put("<div class=\"wide\"%s><table%s>\n<thead><tr>", label, class)
	for _, c := range t.Columns {
		of := HTML("")
		if c.Attributes == Number {
			of = Number
		}
		if c.Name == "" { // a header has text
			b.Put("<td></td>")
			continue
		}
		b.Put("<th%s>%s</th>", of, c.Name)
	}
	b.Put("</tr></thead>\n<tbody>")
	for _, row := range t.Rows {
		b.Put("<tr>")
		for i, cell := range row {
			b.Put("<td%s>%s</td>", t.Columns[i].Attributes, cell)
		}
		b.Put("</tr>\n")
	}
	b.Put("</tbody></table></div>\n")
}

// wide reports whether the table has no room on a phone, on whose lines there is room for
// about 44 characters. Words need 14 beside each other to be read, long names more.
func (t *Table) wide() bool {
	all := 0
	for i, c := range t.Columns {
		most := 14
		if c.Attributes == Name || c.Attributes == Whole {
			most = 30
		}
		all += max(min(len(c.Name), 8), min(t.longest(i), most)) + 2
	}
	return all > 44 && len(t.Columns) <= mostNames
}

// longest is the length of the longest cell of a column, tags apart.
func (t *Table) longest(column int) (n int) {
	for _, row := range t.Rows {
		text := fmt.Sprint(row[column])
		if _, ok := row[column].(HTML); ok {
			text = tag.ReplaceAllString(text, "")
		}
		n = max(n, len(text))
	}
	return n
}

var tag = regexp.MustCompile(`<[^>]*>`)

// names are what the cells of a card are called, for the style sheet: its title, if it is
// long, needs none.
func (t *Table) names() (all string) {
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ")
	for i, c := range t.Columns {
		if c.Name != "" && (i > 0 || t.longest(0) <= 12) {
			all += fmt.Sprintf("--%d:\"%s \";", i+1, quoted.Replace(c.Name))
		}
	}
	return all
}

// Rows returns the rows of a table, one for each value.
func Rows[T any](values []T, cells func(T) []any) (rows [][]any) {
	for _, v := range values {
		rows = append(rows, cells(v))
	}
	return rows
}
