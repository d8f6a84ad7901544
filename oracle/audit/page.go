package audit

import (
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
)

// WritePage writes the report as an HTML page that needs nothing else. command is what
// repeats it, on the given machine; both may be "".
func (r *Report) WritePage(w io.Writer, command, machine string) error {
	p := verdict.Page{Title: r.title(), Outcome: r.outcome(), Command: command, Machine: machine}
	b := &p.Below
	if wrong := r.wrong(); wrong != "" {
		b.Put("<p class=\"alarm\">%s</p>\n", wrong)
	}
	if r.FalseFailures > 0 { // what is worst is first
		r.putHonest(b)
	}
	if r.Survive > 0 {
		r.putSurvivors(b)
	}
	if r.Case != nil {
		r.putCase(b)
	}
	verdict.PutLines(b, "What was audited", r.terms())
	if r.FalseFailures == 0 {
		r.putHonest(b)
	}
	if r.Proposal != nil {
		r.Proposal.put(b)
	}
	texts := func(o Outcome, why string) (all []string) {
		for _, f := range r.of(o) {
			all = append(all, f.Text+": "+why)
		}
		return all
	}
	notJudged := texts(Rounding, "within honest rounding, so that this C proves nothing")
	verdict.PutList(b, "Not judged", append(notJudged, texts(Unchanged, "changes nothing")...))
	if r.Caught > 0 {
		b.Put("<h2>Faults that are caught</h2>\n")
		var all page.Body
		all.Table(page.Table{Label: "Faults that are caught", Columns: page.Columns("", "fault", "measured"),
			Rows: page.Rows(r.of(Caught), func(f Trial) []any { return []any{f.Text, values(r.Test.Criteria, f.Values)} })})
		verdict.Fold(b, fmt.Sprintf("All %d, and what the test measured", r.Caught), all.HTML())
	}
	return p.Write(w)
}

// putHonest adds what the test says of correct kernels.
func (r *Report) putHonest(b *page.Body) {
	b.Put("<h2>Correct kernels</h2>\n")
	b.Table(page.Table{Label: "Correct kernels", Columns: page.Columns("", "kernel", "test", "measured"),
		Rows: page.Rows(r.Honest, func(h Honest) []any {
			says := any(h.says())
			if !h.Pass {
				says = page.Format(`<span class="bad">%s</span>`, says)
			}
			return []any{r.name(&h), says, values(r.Test.Criteria, h.Values)}
		})})
}

// putSurvivors adds the faults that pass, the worst of them in sight.
func (r *Report) putSurvivors(b *page.Body) {
	table := func(b *page.Body, label string, faults []Trial) {
		b.Table(page.Table{Label: label, Columns: append(page.Columns("", "fault", "the worst"), page.Columns(page.Number, r.unit(), "elements beyond", "relative L2")...),
			Rows: page.Rows(faults, func(f Trial) []any {
				return []any{f.Text, "at " + f.place(), f.error(), f.Outside, number(f.RelativeL2)}
			})})
	}
	b.Put("<h2>Faults that pass unseen, the farthest from what correct kernels compute first</h2>\n<p class=\"note\">C has %s.</p>\n", textout.Count(r.M*r.N, "element"))
	all := r.of(Survives)
	seen := all[:min(len(all), mostSurvivors)]
	table(b, "Faults that pass", seen)
	if rest := all[len(seen):]; len(rest) > 0 {
		var more page.Body
		table(&more, "More faults that pass", rest)
		verdict.Fold(b, fmt.Sprintf("And %d more", len(rest)), more.HTML())
	}
}

// of returns the faults of an outcome.
func (r *Report) of(o Outcome) (all []Trial) {
	for _, f := range r.Faults {
		if f.Outcome == o {
			all = append(all, f)
		}
	}
	return all
}

// putCase adds what was reported of a public test.
func (r *Report) putCase(b *page.Body) {
	b.Put("<h2>What was reported</h2>\n<p>%s: %s (<a href=\"%s\">%s</a>)</p>\n", r.Case.Name, r.Case.Title, r.Case.Issue, r.Case.Issue)
	b.Table(page.Table{Label: "What was reported", Columns: page.Columns("", "reported", "here"),
		Rows: page.Rows(r.Case.Claims, func(c SentenceResult) []any { return []any{c.Text, c.found()} })})
	verdict.PutList(b, "What it says", r.Case.Says)
	verdict.PutList(b, "What is assumed", r.Case.Assumed)
}

// put adds the proposed test.
func (p *Proposal) put(b *page.Body) {
	b.Put("<h2>A better test</h2>\n<p>C of each of these operands, tried with the same faults: %s.</p>\n", p.together())
	b.Table(page.Table{Label: "A better test", Columns: append(page.Columns("", "operands", "what they are", "demanded"), page.Columns(page.Number, "caught", "of")...),
		Rows: page.Rows(p.Sets, func(s Set) []any { return []any{s.Name, s.Text, s.demand(), s.Caught, s.Tried} })})
	var left []string
	for _, f := range p.Faults {
		if f.Outcome != Caught {
			left = append(left, f.Text+": "+f.Outcome.String())
		}
	}
	verdict.PutList(b, "What it does not catch", left)
}
