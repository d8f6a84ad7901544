package judge

import (
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/verdict"
)

// WritePage writes the result as one HTML page that needs nothing else: the text's
// tables and a map of the errors.
// command is what repeats it, on the given machine; both may be "".
func (v *Verdict) WritePage(w io.Writer, command, machine string) error {
	m := *v.errorMap
	m.RowsOf, m.ColsOf = verdict.Axis{One: "row", Many: "rows", Of: " of C"}, verdict.Axis{One: "column", Many: "columns", Of: " of C"}
	m.Unit, m.Bits = "units of the bound", v.Demand == "bits"
	if m.Bits {
		m.Unit = "ulp"
	}
	if !v.Pass {
		if d := v.Comparison.First; d != nil {
			m.Marks = append(m.Marks, verdict.Mark{Row: d.Row, Col: d.Col, What: "first"})
		}
		m.MarkWorst()
	}
	p := verdict.Page{Title: v.Title(), Outcome: v.Outcome, Command: command, Machine: machine, Map: &m}
	v.putText(&p.Text)
	v.putFirst(&p.Below)
	return p.Write(w)
}

// putText adds what is in the text too.
func (v *Verdict) putText(b *page.Body) {
	if v.Doubt != nil {
		verdict.PutParagraphs(b, "What would decide it", v.Doubt.Decide)
	}
	verdict.PutParagraphs(b, "What explains them", v.Explained())
	heading := ""
	if !v.Pass {
		heading = "What was compared"
		if clusters := v.Clusters(); len(clusters) > 0 {
			verdict.PutLines(b, "Where they are", clusters)
		}
	}
	compared := Line{Name: "C = A·Bᵀ", Value: fmt.Sprintf("%dx%d %s, K = %d", v.M, v.N, v.Type, v.K)}
	verdict.PutLines(b, heading, append([]Line{compared}, v.terms()...))
	verdict.PutLines(b, "Findings", v.findings())
	if together := v.Together(); together != "" {
		class := page.HTML("")
		if v.Power.Alarm() {
			class = ` class="alarm"`
		}
		b.Put("<p%s>%s</p>\n", class, together)
	}
	if tests := v.tests(); len(tests) > 0 {
		verdict.PutLines(b, "", tests)
	}
	if seen := v.seen(); len(seen) > 0 {
		verdict.PutLines(b, "What would have been seen", seen)
	}
}

// putFirst adds the blocks of K of the first element that diverges, and its codes.
func (v *Verdict) putFirst(b *page.Body) {
	first := v.FirstLine()
	if first == "" {
		return
	}
	b.Put("<h2>%s</h2>\n<div class=\"wide\"><table>\n<tr>", first)
	page.Each(b, "<th class=\"number\">%s</th>", []string{"block", "K", "scale of A", "scale of B", "sum of codes", "scaled", "running"})
	b.Put("</tr>\n")
	blocks, from := v.blocks()
	if from > 0 {
		putMore(b, from)
	}
	for i, s := range blocks {
		class := page.HTML("")
		if from+i == v.Comparison.First.Suspect {
			class = ` class="suspect"`
		}
		b.Put("<tr%s>", class)
		page.Each(b, "<td class=\"number\">%s</td>", []any{from + i, span(s), full(s.ScaleA), full(s.ScaleB), digits(s.Sum, 10), digits(s.Scaled, 10), digits(s.Running, 10)})
		b.Put("</tr>\n")
	}
	if left := len(v.Comparison.First.Blocks) - from - len(blocks); left > 0 {
		putMore(b, left)
	}
	b.Put("</table></div>\n")
	for _, c := range v.codes() {
		b.Put("<pre>codes of %s\n", c.name)
		page.Each(b, "%s\n", c.lines)
		b.Put("</pre>\n")
	}
}

func putMore(b *page.Body, n int) { b.Put("<tr><td colspan=\"7\">%s more</td></tr>\n", n) }
