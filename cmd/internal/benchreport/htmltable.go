package benchreport

import "github.com/octavo-fp8/octavo/lab/page"

// putOn adds the table to a page.
func (t *crossTable) putOn(p *page.Page, label string) {
	named := false
	for _, g := range t.groups {
		for _, c := range g.columns {
			named = named || c.name != ""
		}
	}
	p.Put("<div class=\"wide dense\" tabindex=\"0\" role=\"region\" aria-label=\"%s\">\n<table>\n<thead>\n", label)
	if named {
		p.Put("<tr><td rowspan=\"2\"></td>")
	} else {
		p.Put("<tr><td></td>")
	}
	for _, g := range t.groups {
		p.Put("<th class=\"number\" scope=\"colgroup\" colspan=\"%s\">%s</th>", len(g.columns), g.name)
	}
	p.Put("</tr>\n")
	if named {
		p.Put("<tr>")
		for _, g := range t.groups {
			for _, c := range g.columns {
				p.Put("<th class=\"number\" scope=\"col\">%s</th>", c.name)
			}
		}
		p.Put("</tr>\n")
	}
	p.Put("</thead>\n<tbody>\n")
	for _, row := range t.rows {
		p.Put("<tr><th scope=\"row\">%s</th>", row)
		for _, g := range t.groups {
			for _, c := range g.columns {
				p.Put("<td class=\"number\">%s</td>", c.cells[row])
			}
		}
		p.Put("</tr>\n")
	}
	p.Put("</tbody>\n</table>\n</div>\n")
}
