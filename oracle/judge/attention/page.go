package attention

import (
	"io"

	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/verdict"
)

// WritePage writes the verdict as an HTML page that needs nothing else, with a map of the
// errors of the sequence that is the most wrong.
// command is what repeats it, on the given machine; both may be "".
func (v *Verdict) WritePage(w io.Writer, command, machine string) error {
	p := verdict.Page{Title: v.Title(), Outcome: v.Outcome, Command: command, Machine: machine, Map: v.errorMap(), Heading: "Largest error of each row"}
	if v.Batch > 1 {
		p.Heading += ", " + v.place(v.worstSequence(), "")
	}
	p.Heading += ": "
	if cause := v.Cause(); cause != "" {
		verdict.PutParagraphs(&p.Text, "What explains it", []string{cause})
	}
	verdict.PutLines(&p.Text, "Findings", v.findings())
	verdict.PutLines(&p.Text, "What was compared", v.terms())
	if from := v.Kernel.Evidence; from != "" {
		p.Text.Put("<p class=\"note\">The kernel is described from %s.</p>\n", from)
	}
	v.putHeads(&p.Below)
	return p.Write(w)
}

// putHeads adds the heads with something outside.
func (v *Verdict) putHeads(b *page.Body) {
	heads, more := v.heads()
	if len(heads) == 0 {
		return
	}
	t := page.Table{Label: "Heads with errors", Columns: append(page.Columns(page.Number, "head", "elements outside",
		"log-sum-exps", "units of the bound", "relative L2", "cosine"), page.Column{Name: "rows"})}
	for _, h := range heads {
		t.Rows = append(t.Rows, []any{h.head, h.outside, h.lses, h.largest, h.relL2, h.cosine, h.rows})
	}
	if v.Batch > 1 {
		t.Columns = append(page.Columns(page.Number, "sequence"), t.Columns...)
		for i, h := range heads {
			t.Rows[i] = append([]any{h.sequence}, t.Rows[i]...)
		}
	}
	b.Put("<h2>Where it is wrong</h2>\n")
	b.Table(t)
	if more > 0 {
		b.Put("<p class=\"note\">And %s heads more.</p>\n", more)
	}
}

// errorMap is the largest errors of rows over the heads and queries of the sequence that is
// the most wrong, of those that were looked at.
func (v *Verdict) errorMap() *verdict.Map {
	q := &v.Sequences[v.worstSequence()]
	var at []int
	if q.Looked != nil {
		at = []int{}
		for h := range v.Heads {
			for _, i := range q.Looked {
				at = append(at, h*q.Queries+i)
			}
		}
	}
	m := verdict.NewMap(v.Heads, q.Queries, at, 1, func(i int) verdict.Error {
		return verdict.Error{Size: q.ratios[i], Outside: q.ratios[i] > 1}
	})
	m.RowsOf, m.ColsOf = verdict.Axis{One: "head", Many: "heads"}, verdict.Axis{One: "query", Many: "queries"}
	m.Unit = "units of the bound"
	if !v.Pass {
		m.MarkWorst()
	}
	return m
}
