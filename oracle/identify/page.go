package identify

import (
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/verdict"
)

// WritePage writes the report as an HTML page that needs nothing else. command is what
// repeats it, on the given machine; both may be "".
func (r *Report) WritePage(w io.Writer, command, machine string) error {
	p := verdict.Page{Title: r.Found(), Command: command, Machine: machine}
	switch len(r.Kernels) {
	case 0:
		p.Outcome = verdict.Fail
	case 1:
		p.Outcome = verdict.Pass
	}
	p.Text.Put("<p>%s</p>\n", r.product())
	if lines := r.kernels(); len(lines) > 0 {
		verdict.PutLines(&p.Text, "What gives the answers", lines)
	}
	if lines := r.Measured.lines(r.Setup); len(lines) > 0 {
		verdict.PutLines(&p.Text, "What was measured", lines)
	}
	t := page.Table{Label: "Others", Columns: append(page.Columns("", "kernel, or change of the one found"), page.Columns(page.Number, "answers that differ", "of")...)}
	for _, c := range r.Nearest {
		t.Rows = append(t.Rows, []any{c.Name, c.Differ, c.Of})
	}
	for _, n := range r.Neighbours {
		t.Rows = append(t.Rows, []any{n.Change, n.Differ, n.Of})
	}
	p.Below.Put("<h2>What was tried beside it</h2>\n<p>%s kernels were tried.</p>\n", r.Tried)
	if len(t.Rows) > 0 {
		p.Below.Table(t)
	}
	notJudged := []string{fmt.Sprintf("Products of other shapes, formats or scales than those asked for, %v: a library may choose another kernel for them.", r.Setup)}
	for _, change := range r.loose() {
		notJudged = append(notJudged, change+": no answer tells it from the kernel that was found.")
	}
	verdict.PutList(&p.Below, "Not judged", notJudged)
	return p.Write(w)
}
