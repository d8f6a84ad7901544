package landing

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
	"github.com/octavo-fp8/octavo/telemetry"
)

// WritePage writes a page that needs nothing else: what happened first, where, and what came
// before. Events are those of the last steps.
func (m *Manifest) WritePage(w io.Writer, charts []chart.Chart, events []telemetry.Event) error {
	var p page.Page
	p.Put("<h1>What happened first</h1>\n<p class=\"bad\">%s.</p>\n", m.Cause)
	if f := m.First; f != nil {
		p.Put("<p>The first value of that step that was not finite: <b>%s</b> at element %s of <b>%s</b>, row %s, column %s.</p>\n", f.Value, f.Index, f.Tensor, f.Row, f.Col)
	} else {
		p.Put("<p>The step was done again, and no value that was looked at was NaN or infinite: activations, their gradients, and operands and results of products in FP8.</p>\n")
	}
	if m.Operator != nil {
		m.putOperator(&p)
	}
	m.putTimeline(&p)
	if len(charts) > 0 {
		p.Put("<h2>The steps before</h2>\n")
		p.Charts(charts...)
	}
	if lost := mostLost(events, m.Step); len(lost) > 0 {
		p.Put("<h2>What the last step lost most of</h2>\n")
		p.Table(frame.Table{Class: "figures", Columns: frame.Columns("", "operand", "product", "amax", "saturated", "underflow", "not finite"),
			Rows: frame.Rows(lost, func(e telemetry.Event) []any {
				s := e.Stats
				return []any{e.Tensor, e.Op, fmt.Sprintf("%.3g", s.Amax), textout.Percent(s.Saturated(), s.Elements),
					textout.Percent(s.Flushed, s.Elements), textout.Percent(s.NonFinite(), s.Elements)}
			})})
	}
	if m.Operator != nil {
		p.Put("<h2>To compute the operator again</h2>\n<p><code>octavo train replay DIR</code>, of the directory that this page is in, on any machine and level: the bits are the same.</p>\n")
	}
	p.Repeat(m.Command, m.Machine)
	return p.Write(w, "octavo train: what happened first")
}

// alike are moments that differ in nothing but numbers.
type alike struct {
	first, last Moment
	times       int
}

// figures are numbers that stand alone, and the one that names a rule.
var figures = regexp.MustCompile(`^Rule [0-9]+|(^|[ (])[-+]?[0-9][-+0-9.e]*`)

// grouped puts moments that are alike in one, in the order of the first of each.
func grouped(moments []Moment) (all []alike) {
	at := map[string]int{}
	for _, m := range moments {
		key := figures.ReplaceAllStringFunc(m.What, func(text string) string {
			if strings.HasPrefix(text, "Rule") {
				return text
			}
			return "#"
		})
		i, known := at[key]
		if !known {
			i = len(all)
			at[key], all = i, append(all, alike{first: m})
		}
		all[i].last = m
		all[i].times++
	}
	return all
}

// mostMoments is how many rows a timeline has at most.
const mostMoments = 40

func (m *Manifest) putTimeline(p *page.Page) {
	p.Put("<h2>Timeline</h2>\n<p>Step %s of rank 0, the only one, was the last.</p>\n", m.Step)
	all := grouped(m.Lines)
	t := frame.Table{Columns: frame.Columns("", "step", "what")}
	for _, a := range all[:min(len(all), mostMoments)] {
		step, what := fmt.Sprint(a.first.Step), a.first.What
		if a.times > 1 {
			step += fmt.Sprintf("–%d", a.last.Step)
			what = fmt.Sprintf("%d times, at first: %s", a.times, what)
			if a.last.What != a.first.What {
				what += " At last: " + a.last.What
			}
		}
		t.Rows = append(t.Rows, []any{step, what})
	}
	p.Table(t)
	if len(all) > mostMoments {
		p.Put("<p class=\"note\">The first %s of %s kinds are shown.</p>\n", mostMoments, len(all))
	}
}

// putOperator adds the product that it was about.
func (m *Manifest) putOperator(p *page.Page) {
	what := "The product in FP8 that it was about"
	if m.First != nil {
		what = "The first product in FP8 with such a value"
	}
	p.Put("<p>%s: <b>%s</b>, %s.\nIn it: %s.</p>\n", what, m.Operator.Name, m.Operator.Op, m.Found.finding())
	t := frame.Table{Columns: frame.Columns("", "operand", "name", "size", "format", "recipe")}
	for i, o := range []OperandJSON{m.Operator.A, m.Operator.B} {
		recipe := fmt.Sprint(o.Recipe.Profile)
		if rounding := o.Recipe.Rounding.String(); rounding != "nearest-even" {
			recipe += fmt.Sprintf(", %s, seed %d", rounding, o.Recipe.Seed)
		}
		t.Rows = append(t.Rows, []any{"AB"[i : i+1], o.Name, fmt.Sprintf("%d × %d", o.Rows, o.Cols), fmt.Sprintf("%v, %v", o.Format, o.Block), recipe})
	}
	p.Table(t)
}

// finding is the inverse of what is saved of one.
func (f Found) finding() Finding {
	return Finding{Value{f.Tensor, f.Index, f.Row, f.Col, float64(f.Value)}, f.Of, f.Why}
}

// mostLost returns the few events of a step that lost the most.
func mostLost(events []telemetry.Event, step int) (all []telemetry.Event) {
	for _, e := range events {
		if e.Step == int64(step) && e.Stats.Lost() > 0 {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b telemetry.Event) int {
		return cmp.Or(
			cmp.Compare(b.Stats.NonFinite()+b.Stats.BecameNonFinite, a.Stats.NonFinite()+a.Stats.BecameNonFinite),
			cmp.Compare(b.LostShare(), a.LostShare()),
		)
	})
	return all[:min(len(all), 10)]
}
