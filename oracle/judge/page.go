package judge

import (
	"fmt"
	"io"
	"strings"

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
	b.Put("<h2>%s</h2>\n", first)
	t := page.Table{Label: first, Columns: page.Columns(page.Number, "block", "K", "scale of A", "scale of B", "sum of codes", "scaled", "running")}
	blocks, from := v.blocks()
	for i, s := range blocks {
		row := []any{from + i, span(s), full(s.ScaleA), full(s.ScaleB), digits(s.Sum, 10), digits(s.Scaled, 10), digits(s.Running, 10)}
		if from+i == v.Comparison.First.Suspect {
			for k, cell := range row {
				row[k] = page.Format("<span class=\"bad\">%s</span>", cell)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	b.Table(t)
	if more := len(v.Comparison.First.Blocks) - len(blocks); more > 0 {
		b.Put("<p class=\"note\">%s blocks more.</p>\n", more)
	}
	for _, c := range v.codes() {
		b.Put("<pre class=\"codes\">codes of %s\n", c.name)
		for _, line := range c.lines {
			half := min(len(line), strings.IndexByte(line, ':')+1+len(" 00")*perLine/2)
			b.Put("%s<span>%s</span>\n", line[:half], line[half:]) // a line of its own on a phone
		}
		b.Put("</pre>\n")
	}
}
