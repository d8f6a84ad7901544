package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle"
)

// WriteJSON writes the report as JSON, indented. NaN and infinities are the strings
// "NaN", "+Inf" and "-Inf".
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// Summary is the report in a line, what is worst first: a test that fails a correct kernel says
// nothing when it fails another.
func (r *Report) Summary() string {
	var right, others int // that others are not claimed may be why they fail
	for i := range r.Honest {
		switch h := &r.Honest[i]; {
		case h.right(r.Bits):
			right++
		case !h.Pass:
			others++
		}
	}
	var says []string
	if r.FalseFailures > 0 {
		says = append(says, fmt.Sprintf("fails %d of %s", r.FalseFailures, textout.Count(right, "correct kernel")))
	}
	faults := textout.Count(len(r.Faults), "fault")
	switch {
	case r.Survive > 0:
		says = append(says, fmt.Sprintf("lets %d of %s pass", r.Survive, faults))
	case r.Caught > 0:
		says = append(says, fmt.Sprintf("lets no fault pass: it catches all %d, of %d, that make C wrong", r.Caught, len(r.Faults)))
	default:
		says = append(says, fmt.Sprintf("had nothing to catch: none of %s makes this C wrong", faults))
	}
	if others > 0 {
		beyond := "beyond the bound"
		if r.Bits {
			beyond = "without the bits"
		}
		says = append(says, fmt.Sprintf("fails %s %s of what is claimed", textout.Count(others, "correct kernel"), beyond))
	}
	return "the test " + strings.Join(says, ", and ")
}

// Limits of what a text lists.
const (
	mostSurvivors = 8
	mostOthers    = 10
)

// WriteText writes the report for people: all survivors where all says so, otherwise the
// worst of them.
func (r *Report) WriteText(w io.Writer, all bool) error {
	b := &printer{Writer: verdict.NewWriter(w), survivors: mostSurvivors, others: mostOthers}
	if all {
		b.survivors, b.others = len(r.Faults), len(r.Faults)
	}
	b.line("%s", r.title())
	if wrong := r.wrong(); wrong != "" {
		b.line("%s", wrong)
	}
	if r.FalseFailures > 0 { // what is worst is first
		r.writeHonest(b)
	}
	r.writeSurvivors(b)
	if r.Proposal != nil {
		r.Proposal.write(b)
	}
	b.line("")
	if r.Case != nil {
		verdict.WriteTable(b, r.Case.lines())
		b.line("")
	}
	verdict.WriteTable(b, r.terms())
	if r.FalseFailures == 0 {
		r.writeHonest(b)
	}
	r.writeOthers(b)
	if r.Proposal != nil {
		b.list("what the better test does not catch:", r.Proposal.left(), b.others)
	}
	return b.Flush()
}

// outcome is the verdict on the test.
func (r *Report) outcome() string {
	switch {
	case r.Survive+r.FalseFailures > 0 || r.wrong() != "":
		return verdict.Fail
	case r.Caught == 0:
		return verdict.Undecided
	}
	return verdict.Pass
}

// title is the outcome and the summary.
func (r *Report) title() string { return strings.ToUpper(r.outcome()) + ": " + r.Summary() }

// terms are what was audited.
func (r *Report) terms() []verdict.Line {
	bound := verdict.Linef("bound", "%s at most, root mean square %s: how far correct kernels may be from the exact product", number(r.Bound), number(r.BoundRMS))
	if r.Bits {
		bound = verdict.Line{Name: "bound", Value: "none: correct kernels have the bits that are claimed"}
	}
	return []verdict.Line{
		verdict.Linef("C", "[%d, %d] %v, K = %d, largest %s, root mean square %s", r.M, r.N, r.Type, r.K, number(r.Largest), number(r.RMS)),
		{Name: "A", Value: textout.Line(r.A.String())},
		{Name: "B", Value: textout.Line(r.B.String())},
		{Name: "test", Value: r.Test.String()},
		{Name: "reference", Value: textout.Line(r.Test.Reference.String())},
		bound,
	}
}

// wrong says what is wrong with the reference, if anything is.
func (r *Report) wrong() string {
	d := r.Reference
	if d == nil || d.Outside == 0 {
		return ""
	}
	what := "THE REFERENCE IS WRONG: %s beyond the bound, the worst at %s"
	if r.Bits { // the exact product does not have them
		what = "the reference does not have the bits that are demanded: %s differ, the worst at %s"
	}
	return fmt.Sprintf(what, elements(d.Outside, r.M*r.N), d.place())
}

// printer writes lines and tables that fit what is written to; its first error is that of Flush.
type printer struct {
	textout.Writer
	survivors, others int
}

func (p *printer) line(format string, args ...any) {
	textout.Hanging(p, "", fmt.Sprintf(format, args...), 2)
}

// table writes a table below an empty line and, unless it is "", a line.
func (p *printer) table(above string, write func(t *textout.Table)) {
	p.line("")
	if above != "" {
		p.line("%s", above)
	}
	t := textout.NewTable(p.Writer)
	write(t)
	t.Flush()
}

func number(n oracle.Number) string { return short(float64(n)) }

func elements(n, of int) string { return fmt.Sprintf("%d of %s", n, textout.Count(of, "element")) }

// place describes the worst element.
func (d *Distance) place() string {
	if d.Worst == nil {
		return "none off"
	}
	p := d.Worst
	got, want := number(p.Got), number(p.Want)
	if got == want && p.Got != p.Want {
		got, want = fmt.Sprint(float64(p.Got)), fmt.Sprint(float64(p.Want))
	}
	return fmt.Sprintf("(%d, %d): got %s, want %s", p.Row, p.Col, got, want)
}

// error is the largest error in units of the bound or, where bits are demanded, of the last place.
func (d *Distance) error() string {
	if d.Worst == nil {
		return "0"
	}
	return number(d.Worst.Error)
}

// unit is that of the largest errors.
func (r *Report) unit() string {
	if r.Bits {
		return "ulp"
	}
	return "times the bound"
}

// lines are what was reported of a public test.
func (c *CaseResult) lines() []verdict.Line {
	lines := []verdict.Line{{Name: "case", Value: c.Name + ": " + c.Title}, {Value: c.Issue}}
	for _, s := range c.Says {
		lines = append(lines, verdict.Line{Name: "says", Value: s})
	}
	for _, s := range c.Assumed {
		lines = append(lines, verdict.Line{Name: "assumed", Value: s})
	}
	for i := range c.Claims {
		lines = append(lines, verdict.Line{Name: c.Claims[i].found(), Value: c.Claims[i].Text})
	}
	return lines
}

// found says whether what was reported was found.
func (c *SentenceResult) found() string {
	if c.Holds {
		return "found"
	}
	return "NOT FOUND"
}

// writeHonest lists correct kernels that fail, and how near the others come to failing.
func (r *Report) writeHonest(b *printer) {
	b.table("", func(t *textout.Table) {
		fmt.Fprintln(t, "test\tcorrect kernel\tmeasured")
		for i := range r.Honest {
			h := &r.Honest[i]
			says := h.says()
			if !h.Pass {
				says = textout.Wrong(says)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\n", says, r.name(h), values(r.Test.Criteria, h.Values))
		}
	})
}

func (h *Honest) says() string {
	if h.Pass {
		return "passes"
	}
	return "FAILS"
}

// name is that of a kernel, and whether it is one that is claimed.
func (r *Report) name(h *Honest) string {
	switch {
	case h.Claimed && h.Outside > 0 && r.Bits:
		return h.Name + ", other bits"
	case !h.Claimed && h.Outside > 0 && r.Bits:
		return h.Name + ", not claimed, other bits"
	case !h.Claimed && h.Outside > 0:
		return h.Name + ", not claimed, beyond the bound"
	case !h.Claimed:
		return h.Name + ", not claimed"
	}
	return h.Name
}

// values says what criteria measured.
func values(criteria []Criterion, all []Value) string {
	s := make([]string, len(all))
	for i, v := range all {
		if criteria[i].Measure == Close {
			s[i] = fmt.Sprintf("%s %% not close", short(100*float64(v.Value)))
			continue
		}
		s[i] = fmt.Sprintf("%s, limit %s", number(v.Value), number(v.Limit))
	}
	return strings.Join(s, ", ")
}

// writeSurvivors lists the faults that pass.
func (r *Report) writeSurvivors(b *printer) {
	if all := r.of(Survives); len(all) > 0 {
		b.table("these pass unseen, the farthest from what correct kernels compute first:", func(t *textout.Table) {
			fmt.Fprintf(t, "%s\telements\trelative L2\tfault\n", r.unit())
			for _, f := range all[:min(len(all), b.survivors)] {
				fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", f.error(), f.Outside, number(f.RelativeL2), f.Text)
				t.Note("the worst at %s", f.place())
			}
		})
		b.more(len(all) - b.survivors)
	}
}

// writeOthers says what becomes of the other faults.
func (r *Report) writeOthers(b *printer) {
	b.line("")
	b.line("%s: %d pass the test unseen, %d are caught, %d are within honest rounding, %d change nothing",
		textout.Count(len(r.Faults), "fault"), r.Survive, r.Caught, r.Rounding, r.Unchanged)
	if b.survivors >= len(r.Faults) {
		b.list("these are caught:", texts(r.of(Caught)), b.others)
	}
	b.list("these are within honest rounding, so that this C proves nothing:", texts(r.of(Rounding)), b.others)
	if b.survivors >= len(r.Faults) {
		b.list("these change nothing:", texts(r.of(Unchanged)), b.others)
	}
}

func texts(all []Trial) (texts []string) {
	for i := range all {
		texts = append(texts, "-\t"+all[i].Text)
	}
	return texts
}

// list writes a heading and lines of a table, of which there are some, at most so many.
func (p *printer) list(heading string, lines []string, most int) {
	if len(lines) == 0 {
		return
	}
	p.table(heading, func(t *textout.Table) {
		for _, line := range lines[:min(len(lines), most)] {
			fmt.Fprintln(t, line)
		}
	})
	p.more(len(lines) - most)
}

func (p *printer) more(n int) {
	if n > 0 {
		p.line("and %d more", n)
	}
}

// demand is what the test of a set demands.
func (s *Set) demand() string {
	if s.Bits {
		return "equal bits"
	}
	return fmt.Sprintf("each element within its bound (oracle.Bound), %s at most", number(s.Atol))
}

// together says what all sets catch.
func (p *Proposal) together() string {
	return fmt.Sprintf("together they catch %d of %d faults; correct kernels that fail: %d", p.Caught, len(p.Faults), p.FalseFailures)
}

func (p *Proposal) write(b *printer) {
	b.table("a better test, tried with the same faults: C of each of these operands", func(t *textout.Table) {
		fmt.Fprintln(t, "caught\tof\toperands\tC must have")
		for i := range p.Sets {
			s := &p.Sets[i]
			fmt.Fprintf(t, "%d\t%d\t%s\t%s\n", s.Caught, s.Tried, s.Name, s.demand())
			t.Note("%s", s.Text)
			if !s.Bits && s.Flat > 0 {
				t.Note("with rtol 0 and atol %s for all elements %d of these would pass", number(s.Atol), s.Flat)
			}
		}
	})
	b.line("%s", p.together())
	if p.Rounding > 0 {
		b.line("%d cannot be told from honest rounding with any of them", p.Rounding)
	}
	if p.Unchanged > 0 {
		b.line("%d change no bit with any of them: they are no faults of this product", p.Unchanged)
	}
}

// left are the faults that it does not catch.
func (p *Proposal) left() (left []string) {
	for i := range p.Faults {
		if f := &p.Faults[i]; f.Outcome != Caught {
			left = append(left, f.Outcome.String()+"\t"+f.Text)
		}
	}
	return left
}
