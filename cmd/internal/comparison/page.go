package comparison

import (
	"fmt"
	"io"
	"slices"
	"strings"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/chart"
	"github.com/octavo-fp8/octavo/lab/page"
	"github.com/octavo-fp8/octavo/telemetry"
)

// WritePage writes the result as one HTML page that needs nothing else: tables and
// charts. command is what repeats the run.
func (r *Result) WritePage(w io.Writer, command, machine string) error {
	var p page.Page
	model, verdict := r.Options.Model(), r.Diagnosis()
	p.Put("<h1>%s against FP32</h1>\n", model)
	r.putResult(&p)
	r.putVerdict(&p, verdict)
	p.Put("<h2>Curves</h2>\n")
	p.Charts(r.charts()...)
	if counts := r.SpikeCounts(); len(counts) > 0 {
		r.putSpikes(&p, counts)
	}
	if len(r.Alarms) > 0 {
		p.Put("<h2>Rules</h2>\n<p>What the rules of this run found in %s, and what was done.</p>\n", model)
		p.Table(frame.Table{Columns: frame.Columns("", "rule", "when", "what", "done"),
			Rows: frame.Rows(r.Alarms, func(a Alarm) []any { return []any{a.Number(), a.When(), a.What(), a.Done} })})
	}
	if experts := r.Experts(); len(experts) > 0 {
		r.putExperts(&p, experts, len(verdict.Findings) > 0)
	}
	p.Put("<h2>Operands of the linear layers, all products and steps</h2>\n")
	if len(verdict.Findings) > 0 {
		p.Put("<p class=\"note\">What is sick is marked with !, what is suspect with ?, by its worst step; shares are those of all steps.</p>\n")
	}
	p.Table(frame.Table{Class: "figures", Columns: frame.Columns("", "layer", "input amax", "saturated %", "underflow %",
		"weight amax", "saturated %", "underflow %", "gradient amax", "saturated %", "underflow %"),
		Rows: frame.Rows(r.Layers(), func(l Layer) []any {
			return slices.Concat([]any{l.Name, amaxCell(l.Input)}, shareCells(l.Input), []any{amaxCell(l.Weight)}, shareCells(l.Weight), []any{amaxCell(l.Gradient)}, shareCells(l.Gradient))
		})})
	p.Repeat(command, machine)
	p.Put("<p>The losses do not depend on the machine.</p>\n")
	return p.Write(w, "octavo train: "+model+" against FP32")
}

// putResult adds what was trained and the losses.
func (r *Result) putResult(p *page.Page) {
	o, model, first := r.Options, r.Options.Model(), r.Points[0]
	p.Put(`<p>%s parameters, %s of %s steps of %s &times; %s bytes of %s
(%s bytes, SHA-256 <code>%s</code>), seed %s.
%s: %s. Both models start from the same weights and see the same batches.</p>
`, r.Params, len(r.Points), o.Steps, o.Batch, o.Context, r.Text.Source, r.Text.Bytes, r.Text.SHA256, o.Seed, model, o.recipe())
	frame.Each(&p.Body, "<p>%s</p>\n", r.Activations)
	frame.Each(&p.Body, "<p>%s</p>\n", r.Extensions)
	losses := func(name string, fp32, fp8 float64) []any {
		return []any{name, fmt.Sprintf("%.4f", fp32), fmt.Sprintf("%.4f", fp8), fmt.Sprintf("%+.3f\u00a0%%", Gap(fp32, fp8))}
	}
	p.Table(frame.Table{Class: "figures", Columns: frame.Columns("", "", "FP32", model, "gap"), Rows: [][]any{
		losses("first loss", first.FP32.Loss, first.FP8.Loss),
		losses("final loss, mean of the last tenth", r.FP32.Loss, r.FP8.Loss),
		losses("held-out loss", r.FP32.HeldOut, r.FP8.HeldOut),
		{"time", round(r.FP32.Time), round(r.FP8.Time), ""},
	}})
}

// putVerdict adds what became of the values.
func (r *Result) putVerdict(p *page.Page, v Diagnosis) {
	class := frame.HTML("")
	if v.Verdict == telemetry.Sick.String() || v.Verdict == telemetry.Suspect.String() {
		class = ` class="bad"`
	}
	p.Put("<p%s><strong>%s</strong></p>\n", class, v.Summary)
	if len(v.Findings) > 0 {
		p.Table(frame.Table{Columns: frame.Columns("", "layer", "operand", "health", "lost, worst step", "product", "in steps"),
			Rows: frame.Rows(v.Findings, func(f Finding) []any {
				return []any{f.Layer, f.Operand, f.Health, fmt.Sprintf("%s, %d", f.Lost(), f.Step), f.Op, f.In()}
			})})
	}
	if len(v.Advice) > 0 {
		p.Put("<p>What to try, the likeliest first:</p>\n<ul>")
		frame.Each(&p.Body, "<li>%s</li>", v.Advice)
		p.Put("</ul>\n")
	}
	p.Put("<p class=\"note\">Not judged: %s.</p>\n", strings.Join(v.NotJudged, "; "))
	frame.Each(&p.Body, "<p class=\"bad\">%s</p>\n", r.badLines())
}

func (r *Result) putSpikes(p *page.Page, counts []SpikeCount) {
	model := r.Options.Model()
	p.Put(`<h2>Spikes</h2>
<p>Losses and gradient norms far above the median of those before. One that both models have in the same step is shared:
both saw the same batch, and nothing that %s lost has to explain it. For one of %s alone a suspect is named if there is evidence: an operand
of which clearly more was lost than in the steps before. All spikes are in spikes.csv.</p>
`, model, model)
	p.Table(frame.Table{Class: "figures", Columns: frame.Columns("", "spikes of", "FP32 alone", model+" alone", "with a suspect", "both"),
		Rows: frame.Rows(counts, func(c SpikeCount) []any { return []any{c.Series, c.FP32, c.FP8, c.Suspects, c.Shared} })})
	p.Charts(r.spikeCharts()...)
	p.Put("<h3>The largest</h3>\n")
	p.Table(frame.Table{Columns: frame.Columns("", "step", "model", "of", "value", "median before", "spike of", "suspect"),
		Rows: frame.Rows(r.LargestSpikes(), func(s Spike) []any {
			return []any{s.Step, r.Called(s.Model), s.Series, threeDigits(s.Value), threeDigits(s.Median), r.Whose(s), s.Suspected()}
		})})
}

func (r *Result) putExperts(p *page.Page, experts []Expert, marked bool) {
	model := r.Options.Model()
	p.Put(`<h2>Experts</h2>
<p>What came to each expert that tokens are sent to, in all steps, and what %s made of it: of the input of gate
and up, of the input of down, and of the gradients of all three. A row without operands is of a layer that multiplies in BF16, or of
an expert without tokens.`, model)
	if marked {
		p.Put(" Marks are those of the table of operands.")
	}
	p.Put("</p>\n")
	p.Charts(r.expertCharts()...)
	t := frame.Table{Class: "figures", Columns: frame.Columns("", "layer", "expert", "tokens, FP32\u00a0%", "tokens, "+model+"\u00a0%",
		"input amax", "input of down amax", "gradient amax", "saturated %", "underflow %")}
	for _, e := range experts {
		row := []any{e.Layer, e.Number, fmt.Sprintf("%.1f", 100*e.FP32Share), fmt.Sprintf("%.1f", 100*e.FP8Share)}
		if e.Multiplies() {
			row = append(append(row, amaxCell(e.Input), amaxCell(e.DownInput), amaxCell(e.Gradient)), shareCells(e.Activations())...)
		} else {
			row = append(row, "", "", "", "", "")
		}
		t.Rows = append(t.Rows, row)
	}
	p.Table(t)
}

func threeDigits(x float64) string { return fmt.Sprintf("%.3g", x) }

// amaxCell and shareCells are of an operand, marked where it is suspect or sick.
func amaxCell(o Operand) frame.HTML { return marked(threeDigits(o.Stats.Amax), o.NonFiniteHealth) }

func shareCells(o Operand) []any {
	return []any{marked(fmt.Sprintf("%.3f", o.Saturated()), o.SaturatedHealth), marked(fmt.Sprintf("%.3f", o.Underflowed()), o.FlushedHealth)}
}

func marked(text string, h telemetry.Health) frame.HTML {
	if h == 0 {
		return frame.Format("%s", text)
	}
	return frame.Format("%s&nbsp;<mark>%s</mark>", text, strings.TrimSpace(mark(h)))
}

// charts are those of the page.
func (r *Result) charts() []chart.Chart {
	return []chart.Chart{r.LossChart(), r.gapChart(), r.normChart(), r.amaxChart(), r.underflowChart()}
}
