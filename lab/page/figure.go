package page

import (
	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/chart"
)

// tableRows is how many a chart's table has at most.
const tableRows = 200

// label returns what a chart is called.
func label(c chart.Chart) string {
	if c.Title == "" {
		return "Chart"
	}
	return "Chart: " + c.Title
}

// Charts adds charts, each on lines of its own.
func (p *Page) Charts(all ...chart.Chart) {
	for _, c := range all {
		p.chart(c)
	}
}

// Multiples adds charts whose axes are of one kind as small multiples, beside each other. note
// says what holds of all; bar is the width of bars.
func (p *Page) Multiples(note string, bar float64, all ...chart.Chart) {
	p.Put("<p class=\"note\">%s</p>\n<div class=\"multiples\">\n", note)
	p.Charts(chart.Multiples(all, bar)...)
	p.Put("</div>\n")
}

func (p *Page) chart(c chart.Chart) {
	c = p.colors.Assign(c)
	p.charts++
	static, err := picture(c)
	if err != nil {
		p.err = err
		return
	}
	data, err := c.JSON()
	if err != nil {
		p.err = err
		return
	}
	id := page.Format("chart-%s", p.charts)
	p.Put(`<figure class="chart" id="%s">
<figcaption><span class="title">%s</span><span class="tools"></span></figcaption>
<div class="above"><span class="axis-y">%s</span><span class="at"></span></div>
<div class="plot" role="img" tabindex="0" aria-label="%s" aria-describedby="%s-text"></div>
`, id, c.Title, c.Y, label(c), id)
	if c.X != "" {
		p.Put("<div class=\"axis-x\">%s</div>\n", c.X)
	}
	p.Put("<div class=\"legend\"></div>\n<output class=\"unseen\"></output>\n")
	if static != "" {
		p.Put("<noscript>\n<div class=\"wide picture\">%s</div>\n</noscript>\n", static)
	}
	page.Each(&p.Body, "<p class=\"note\">%s</p>\n", c.Missing())
	class := "unseen"
	if c.Description != "" && !c.IsMultiple() { // what is said of all is said once
		class = "note"
	}
	p.Put("<p class=\"%s\" id=\"%s-text\">%s</p>\n<details>\n<summary>Data as a table</summary>\n", class, id, c.Describe())
	t := c.Table(tableRows)
	if t.Left != "" {
		p.Put("<p class=\"note\">%s</p>\n", t.Left)
	}
	p.Table(page.Table{Columns: page.Columns(page.Number, t.Columns...), Rows: page.Rows(t.Rows, Cells)})
	p.Put("</details>\n<script type=\"application/json\">%s</script>\n</figure>\n", page.HTML(data))
}

// Cells returns texts as the cells of a row.
func Cells(texts []string) (cells []any) {
	for _, text := range texts {
		cells = append(cells, text)
	}
	return cells
}
