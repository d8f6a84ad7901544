package landing

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	frame "github.com/octavo-fp8/octavo/internal/page"
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
	p.Put("<h2>Timeline</h2>\n<p>Step %s of rank 0, the only one, was the last.</p>\n", m.Step)
	t := frame.Table{Columns: frame.Columns("", "step", "what")}
	for _, l := range m.Lines {
		t.Rows = append(t.Rows, []any{l.Step, l.What})
	}
	p.Table(t)
	if len(charts) > 0 {
		p.Put("<h2>The steps before</h2>\n")
		p.Charts(charts...)
	}
	if lost := mostLost(events, m.Step); len(lost) > 0 {
		p.Put("<h2>What the last step lost most of</h2>\n")
		percent := func(share float64) string { return fmt.Sprintf("%.3f", 100*share) }
		p.Table(frame.Table{Class: "figures", Columns: frame.Columns("", "operand", "product", "amax", "saturated %", "underflow %", "not finite"),
			Rows: frame.Rows(lost, func(e telemetry.Event) []any {
				return []any{e.Tensor, e.Op, fmt.Sprintf("%.3g", e.Stats.Amax), percent(e.SaturatedShare()), percent(e.FlushedShare()), e.Stats.NonFinite()}
			})})
	}
	if m.Operator != nil {
		p.Put("<h2>To compute the operator again</h2>\n<p><code>octavo train replay DIR</code>, of the directory that this page is in, on any machine and level: the bits are the same.</p>\n")
	}
	p.Repeat(m.Command, m.Machine)
	return p.Write(w, "octavo train: what happened first")
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
