package audit

import (
	"bufio"
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

// Summary is the report in a line.
func (r *Report) Summary() string {
	s := fmt.Sprintf("the test lets %d of %s pass", r.Survive, textout.Count(len(r.Faults), "fault"))
	switch {
	case r.Survive == 0 && r.Caught == 0:
		s = fmt.Sprintf("nothing was tested: none of %s makes this C wrong", textout.Count(len(r.Faults), "fault"))
	case r.Survive == 0:
		s = fmt.Sprintf("the test lets no fault pass: it catches all %d, of %d, that make C wrong", r.Caught, len(r.Faults))
	}
	if r.FalseFailures > 0 {
		s += fmt.Sprintf(", and fails %s", textout.Count(r.FalseFailures, "correct kernel"))
	}
	return s
}

// Limits of what a text lists.
const (
	mostSurvivors = 20
	mostOthers    = 10
)

// WriteText writes the report for people: all survivors where all says so, otherwise the
// worst of them.
func (r *Report) WriteText(w io.Writer, all bool) error {
	b := &printer{Writer: bufio.NewWriter(w), survivors: mostSurvivors, others: mostOthers}
	if all {
		b.survivors, b.others = len(r.Faults), len(r.Faults)
	}
	b.line("%s", r.Summary())
	b.line("")
	r.writeCase(b)
	for _, l := range r.terms() {
		b.line("%-13s %s", l.Name, textout.Line(l.Value))
	}
	if wrong := r.wrong(); wrong != "" {
		b.line("")
		b.line("%s", wrong)
	}
	r.writeHonest(b)
	r.writeFaults(b)
	if r.Proposal != nil {
		r.Proposal.write(b)
	}
	return b.Flush()
}

// terms are what was audited.
func (r *Report) terms() []verdict.Line {
	return []verdict.Line{
		verdict.Linef("C", "[%d, %d] %v, K = %d, largest %s, root mean square %s", r.M, r.N, r.Type, r.K, number(r.Largest), number(r.RMS)),
		{Name: "A", Value: r.A.String()},
		{Name: "B", Value: r.B.String()},
		{Name: "test", Value: r.Test.String()},
		{Name: "reference", Value: r.Test.Reference.String()},
		verdict.Linef("bound", "%s at most, root mean square %s: what correct kernels differ from the exact product", number(r.Bound), number(r.BoundRMS)),
	}
}

// wrong says what is wrong with the reference, if anything is.
func (r *Report) wrong() string {
	if d := r.Reference; d != nil && d.Outside > 0 {
		return fmt.Sprintf("THE REFERENCE IS WRONG: %s beyond the bound, %s", elements(d.Outside, r.M*r.N), d.worst())
	}
	return ""
}

// printer keeps lines; its first error is that of Flush.
type printer struct {
	*bufio.Writer
	survivors, others int
}

func (p *printer) line(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	fmt.Fprintln(p.Writer, text)
}

func number(n oracle.Number) string { return short(float64(n)) }

func elements(n, of int) string { return fmt.Sprintf("%d of %s", n, textout.Count(of, "element")) }

// worst describes the worst element.
func (d *Distance) worst() string {
	if d.Worst == nil {
		return "none off"
	}
	p := d.Worst
	return fmt.Sprintf("the worst at (%d, %d): got %s, want %s, %s times the bound", p.Row, p.Col, number(p.Got), number(p.Want), short(float64(p.Error)))
}

func (r *Report) writeCase(b *printer) {
	if r.Case == nil {
		return
	}
	b.line("case          %s: %s", r.Case.Name, r.Case.Title)
	b.line("              %s", r.Case.Issue)
	for _, s := range r.Case.Says {
		b.line("  says        %s", s)
	}
	for _, s := range r.Case.Assumed {
		b.line("  assumed     %s", s)
	}
	for _, c := range r.Case.Claims {
		b.line("  %-11s %s", c.found(), c.Text)
	}
	b.line("")
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
	b.line("")
	b.line("correct kernels")
	for i := range r.Honest {
		h := &r.Honest[i]
		b.line("  %-6s  %s: %s", h.says(), h.name(), values(r.Test.Criteria, h.Values))
	}
}

func (h *Honest) says() string {
	if h.Pass {
		return "passes"
	}
	return "FAILS"
}

// name is that of the kernel, and whether it is one that is claimed.
func (h *Honest) name() string {
	switch {
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
		s[i] = fmt.Sprintf("%s of %s", number(v.Value), number(v.Limit))
	}
	return strings.Join(s, ", ")
}

func (r *Report) writeFaults(b *printer) {
	b.line("")
	b.line("%d faults: %d pass the test unseen, %d are caught, %d are within honest rounding, %d change nothing", len(r.Faults),
		r.Survive, r.Caught, r.Rounding, r.Unchanged)
	listed := map[Outcome]int{}
	for i := range r.Faults {
		o := &r.Faults[i]
		most, of := b.others, 0
		switch o.Outcome {
		case Survives:
			most, of = b.survivors, r.Survive
		case Rounding:
			of = r.Rounding
		case Caught, Unchanged:
			if b.survivors < len(r.Faults) {
				continue
			}
		}
		listed[o.Outcome]++
		switch n := listed[o.Outcome]; {
		case n == most+1:
			b.line("  and %d more", of-most)
			continue
		case n > most:
			continue
		case n == 1:
			b.line("")
			b.line("%s", [...]string{
				"these pass unseen, the farthest beyond the bound first:",
				"these are caught:",
				"these are within honest rounding, so that this C proves nothing:",
				"these change nothing:",
			}[o.Outcome])
		}
		b.line("  %s", o.Text)
		if o.Outcome == Survives {
			b.line("      %s beyond the bound, %s; error %s of C", elements(o.Outside, r.M*r.N), o.worst(), number(o.RelativeL2))
		}
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
	b.line("")
	b.line("a better test, tried with the same faults: C of each of these operands")
	for i := range p.Sets {
		s := &p.Sets[i]
		b.line("  %s: %s", s.Name, s.Text)
		b.line("      %s; catches %d of %d that were tried with it", s.demand(), s.Caught, s.Tried)
		if !s.Bits && s.Flat > 0 {
			b.line("      with rtol 0 and atol %s for all elements %d of these would pass", number(s.Atol), s.Flat)
		}
	}
	b.line("  %s", p.together())
	if p.Rounding > 0 {
		b.line("  %d cannot be told from honest rounding with any of them", p.Rounding)
	}
	if p.Unchanged > 0 {
		b.line("  %d change no bit with any of them: they are no faults of this product", p.Unchanged)
	}
	listed := 0
	for i := range p.Faults {
		f := &p.Faults[i]
		if f.Outcome == Caught {
			break
		}
		if listed++; listed <= b.others {
			b.line("      %s: %s", f.Outcome, f.Text)
		}
	}
	if listed > b.others {
		b.line("      and %d more", listed-b.others)
	}
}
