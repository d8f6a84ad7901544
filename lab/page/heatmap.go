package page

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/chart"
)

// HeatMap is a picture of what rows, such as layers, had in columns, such as steps: a coloured cell for each. Of several
// measures a reader chooses one. A cell is the largest value of its parts, such as the operands of a layer.
type HeatMap struct {
	Title       string
	Row, Column string // what one is called
	Rows        []HeatRow
	Columns     []float64 // ascending
	Parts       []string
	Measures    []Measure

	// Full says where all values are, for who reads the table of the largest.
	Full string
}

// HeatRow is a row. Where there are too many, neighbours of the same Group become one.
type HeatRow struct{ Name, Group string }

// Measure is what the colours of cells say.
type Measure struct {
	Name, Unit string
	Log        bool      // curves are on a logarithmic axis
	Classes    []Class   // the lowest first
	Values     []float64 // of each part of each column of each row, from 0 to +Inf, which is not finite; NaN: there is none
}

// Class is values from From up to that of the next.
type Class struct {
	From  float64
	Name  string
	Color chart.Color
}

// A heat map has no more rows and columns than can be told apart.
const (
	mostHeatRows    = 100
	mostHeatColumns = 200
)

// HeatMap adds a heat map. A click on a row leads to a chart of it.
func (p *Page) HeatMap(h HeatMap) {
	if len(h.Rows) == 0 || len(h.Columns) == 0 {
		p.Put("<p class=\"note\">%s: there is nothing to show.</p>\n", h.Title)
		return
	}
	b := h.bin()
	p.charts++
	id := page.Format("chart-%s", p.charts)
	p.Put(`<figure class="chart heat" id="%s">
<figcaption><span class="title">%s</span><span class="tools"></span></figcaption>
<div class="above"><span class="axis-y">%s</span><span class="at"></span></div>
<div class="plot" role="img" tabindex="0" aria-label="Heat map: %s" aria-describedby="%s-text"></div>
<div class="axis-x">%s</div>
<ul class="scale"></ul>
<div class="cell"></div>
<output class="unseen"></output>
<noscript>
`, id, h.Title, h.Row, h.Title, id, h.Column)
	for m := range h.Measures {
		b.putStill(&p.Body, m)
	}
	p.Put("</noscript>\n")
	page.Each(&p.Body, "<p class=\"note\">%s</p>\n", b.notes())
	p.Put("<p class=\"unseen\" id=\"%s-text\">%s</p>\n<details>\n<summary>Data as a table</summary>\n", id, b.describe())
	if h.Full != "" {
		p.Put("<p class=\"note\">The largest of each row. %s</p>\n", h.Full)
	}
	p.Table(b.table())
	data, err := b.json()
	if err != nil {
		p.err = err
	}
	p.Put("</details>\n<script type=\"application/json\">%s</script>\n</figure>\n", page.HTML(data))
}

// binned is a heat map of cells that can be told apart.
type binned struct {
	HeatMap
	rows, columns []span
	cells         [][]heatCell // of each measure, by row
}

// span is the rows or columns from one to before another.
type span struct{ from, to int }

// heatCell is the largest value of each part in a cell, and where the largest of all is.
type heatCell struct {
	parts       []float64 // NaN: there is none
	part        int       // of the largest; -1: there is none
	row, column int       // before they were binned
}

func (c heatCell) value() float64 {
	if c.part < 0 {
		return math.NaN()
	}
	return c.parts[c.part]
}

func (h HeatMap) bin() *binned {
	b := &binned{HeatMap: h, rows: h.rowSpans(), columns: evenSpans(len(h.Columns), mostHeatColumns)}
	for _, m := range h.Measures {
		var cells []heatCell
		for _, row := range b.rows {
			for _, column := range b.columns {
				cells = append(cells, h.cell(m, row, column))
			}
		}
		b.cells = append(b.cells, cells)
	}
	return b
}

// rowSpans returns which rows are one: each its own, those of a group, or those of several groups.
func (h HeatMap) rowSpans() []span {
	if len(h.Rows) <= mostHeatRows {
		return evenSpans(len(h.Rows), mostHeatRows)
	}
	var groups []span
	for i, r := range h.Rows {
		if i == 0 || r.Group != h.Rows[i-1].Group {
			groups = append(groups, span{i, i})
		}
		groups[len(groups)-1].to++
	}
	var all []span
	for _, of := range evenSpans(len(groups), mostHeatRows) {
		all = append(all, span{groups[of.from].from, groups[of.to-1].to})
	}
	return all
}

// evenSpans cuts n things into at most so many spans of the same length, of which the last may be shorter.
func evenSpans(n, most int) (all []span) {
	length := (n + most - 1) / most
	for from := 0; from < n; from += length {
		all = append(all, span{from, min(from+length, n)})
	}
	return all
}

func (h HeatMap) cell(m Measure, rows, columns span) heatCell {
	c := heatCell{parts: slices.Repeat([]float64{math.NaN()}, len(h.Parts)), part: -1}
	for row := rows.from; row < rows.to; row++ {
		for column := columns.from; column < columns.to; column++ {
			at := (row*len(h.Columns) + column) * len(h.Parts)
			for part, v := range m.Values[at : at+len(h.Parts)] {
				if math.IsNaN(v) {
					continue
				}
				if !(v <= c.value()) {
					c.part, c.row, c.column = part, row, column
				}
				if !(v <= c.parts[part]) {
					c.parts[part] = v
				}
			}
		}
	}
	return c
}

// nameOf returns what a row is called.
func (b *binned) nameOf(row int) string {
	s := b.rows[row]
	first, last := b.Rows[s.from], b.Rows[s.to-1]
	switch {
	case len(b.rows) == len(b.Rows):
		return first.Name
	case first.Group == last.Group:
		return first.Group
	}
	return first.Group + " to " + last.Group
}

// notes say what one row and one column stand for where that is more than one.
func (b *binned) notes() (notes []string) {
	if len(b.rows) < len(b.Rows) {
		notes = append(notes, fmt.Sprintf("There are %d rows, of which neighbours are shown as one: %d, each with the largest value of those in it.", len(b.Rows), len(b.rows)))
	}
	if n := len(b.columns); n < len(b.Columns) {
		notes = append(notes, fmt.Sprintf("A column is the largest value of %d of the %d values of %s that there are.", b.columns[0].to, len(b.Columns), b.Column))
	}
	return notes
}

// largest returns the cell with the largest value of a measure in a row, of equals the first.
func (b *binned) largest(measure, row int) heatCell {
	n := len(b.columns)
	best := heatCell{part: -1}
	for _, c := range b.cells[measure][row*n : (row+1)*n] {
		if c.part >= 0 && !(c.value() <= best.value()) {
			best = c
		}
	}
	return best
}

// in returns where the largest value of a cell is.
func (b *binned) in(c heatCell) string {
	return fmt.Sprintf("%s %s", b.Rows[c.row].Name, b.Parts[c.part])
}

func (b *binned) table() page.Table {
	t := page.Table{Columns: page.Columns("", b.Row)}
	for _, m := range b.Measures {
		t.Columns = append(append(t.Columns, page.Columns(page.Number, m.label(), b.Column)...), page.Columns("", "of")...)
	}
	for row := range b.rows {
		cells := []any{b.nameOf(row)}
		for m := range b.Measures {
			if c := b.largest(m, row); c.part >= 0 {
				cells = append(cells, valueText(c.value()), b.Columns[c.column], b.in(c))
			} else {
				cells = append(cells, "", "", "")
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

func (m Measure) label() string {
	if m.Unit == "" {
		return m.Name
	}
	return m.Name + ", " + m.Unit
}

func valueText(v float64) string {
	if math.IsInf(v, 0) {
		return "not finite"
	}
	return fmt.Sprintf("%.3g", v)
}

// describe says what the largest value of each measure is, for who cannot see the map.
func (b *binned) describe() string {
	text := fmt.Sprintf("A heat map of %d rows and %d columns.", len(b.rows), len(b.columns))
	for m, measure := range b.Measures {
		best := heatCell{part: -1}
		for row := range b.rows {
			if c := b.largest(m, row); c.part >= 0 && !(c.value() <= best.value()) {
				best = c
			}
		}
		if best.part >= 0 {
			text += fmt.Sprintf(" The largest of %s is %s, of %s at %s %v.", measure.label(), valueText(best.value()), b.in(best), b.Column, b.Columns[best.column])
		}
	}
	return text
}
