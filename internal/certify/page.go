package certify

import (
	"io"

	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/verdict"
)

// WritePage writes the report as an HTML page that needs nothing else. command is what
// repeats it, on the given machine.
func (r *Report) WritePage(w io.Writer, command, machine string) error {
	p := verdict.Page{Command: command, Machine: machine}
	p.Outcome, p.Title = r.verdict()
	b := &p.Below
	b.Put("<p>%s</p>\n", heading(r.Steps, r.Recipe, r.Seed))
	first := page.Table{Label: "First differences", Columns: page.Columns("", "varied", "to", "promised", "first difference")}
	all := page.Table{Label: "Certificates", Columns: page.Columns("", "varied", "to", "against", "tensors", "bits")}
	for _, c := range r.Certificates {
		all.Rows = append(all.Rows, []any{c.Varied, c.To, c.Reference, c.tensors(), c.Outcome()})
		if c.First != nil {
			promised := map[bool]string{true: "yes", false: "no"}[c.Promised]
			first.Rows = append(first.Rows, []any{c.Varied, c.To, promised, c.First})
		}
	}
	if len(first.Rows) > 0 {
		b.Put("<h2>First differences</h2>\n")
		b.Table(first)
	}
	b.Put("<h2>What was compared</h2>\n")
	b.Table(all)
	verdict.PutList(b, "Not compared", r.notVaried())
	return p.Write(w)
}

// WritePage writes the report as an HTML page that needs nothing else. command is what
// repeats it, on the given machine.
func (r *FaultReport) WritePage(w io.Writer, command, machine string) error {
	p := verdict.Page{Command: command, Machine: machine}
	p.Outcome, p.Title = r.verdict()
	p.Below.Put("<p>%s, %s</p>\n<h2>What each check found first</h2>\n", heading(r.Steps, Delayed, r.Seed), onRanks)
	t := page.Table{Label: "Faults", Columns: page.Columns("", append([]string{"fault"}, checks[:]...)...)}
	row := func(fault string, c Checks) {
		found := c.found()
		t.Rows = append(t.Rows, []any{fault, found[0], found[1], found[2]})
	}
	row("none", r.Clean)
	for _, f := range r.Rows {
		row(FaultText(f.Fault), f.Checks)
	}
	p.Below.Table(t)
	return p.Write(w)
}
