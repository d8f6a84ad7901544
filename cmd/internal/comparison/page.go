package comparison

import (
	"fmt"
	"io"
	"slices"
	"strings"

	frame "github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/lab/page"
	"github.com/octavo-fp8/octavo/telemetry"
)

// WritePage writes the result as one HTML page that needs nothing else: what was found, and then
// what led to it. command is what repeats the run.
func (r *Result) WritePage(w io.Writer, command, machine string) error {
	p := page.Page{Live: r.Live}
	model, verdict := r.Options.Model(), r.Diagnosis()
	p.Put("<h1>%s against FP32</h1>\n", model)
	if !r.Live.Written.IsZero() {
		r.Live.Put(&p.Body)
	}
	frame.Each(&p.Body, "<p class=\"bad\"><strong>%s</strong></p>\n", r.Headline())
	r.putVerdict(&p, verdict)
	r.putDifference(&p)
	r.putLosses(&p, verdict)
	p.Put("<h2>Gradients</h2>\n")
	p.Charts(r.normChart())
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
	r.putTrained(&p)
	p.Repeat(command, machine)
	p.Put("<p>The losses do not depend on the machine.</p>\n")
	return p.Write(w, "octavo train: "+model+" against FP32")
}

// putVerdict adds the verdict, and what is healthy, suspect, sick and not judged.
func (r *Result) putVerdict(p *page.Page, v Diagnosis) {
	class := frame.HTML("")
	if v.Verdict == telemetry.Sick.String() || v.Verdict == telemetry.Suspect.String() {
		class = ` class="bad"`
	}
	p.Put("<p%s><strong>%s</strong></p>\n", class, v.Summary)
	frame.Each(&p.Body, "<p class=\"bad\">%s</p>\n", r.badLines())
	var rows [][]any
	for _, of := range []struct {
		health telemetry.Health
		class  string
	}{{telemetry.Sick, "missed"}, {telemetry.Suspect, "undecided"}} {
		if text := v.named(of.health); text != "" {
			rows = append(rows, []any{frame.Format(`<span class="%s">%v</span>`, of.class, of.health), text})
		}
	}
	if n := v.Healthy; n > 0 {
		rows = append(rows, []any{frame.HTML(`<span class="met">healthy</span>`), fmt.Sprintf("%d of %d operands, in the %d steps that were judged", n, v.Operands, v.Steps)})
	}
	rows = append(rows, []any{frame.HTML(`<span class="unjudged">not judged</span>`), strings.Join(v.NotJudged, "; ")})
	p.Table(frame.Table{Columns: frame.Columns("", "health", "of what"), Rows: rows})
}

// mostNamed is the number of operands that are named in a line.
const mostNamed = 4

// named lists the operands of a health.
func (v Diagnosis) named(h telemetry.Health) string {
	var names []string
	sick := map[string]bool{}
	for _, f := range v.Findings { // the sick come first
		sick[f.tensor] = sick[f.tensor] || f.Health == telemetry.Sick
		if name := f.Layer + " " + f.Operand; f.Health == h && (h == telemetry.Sick || !sick[f.tensor]) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if more := len(names) - mostNamed; more > 1 {
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// putDifference adds what the run was for.
func (r *Result) putDifference(p *page.Page) {
	d, first, model := r.Difference(), r.Points[0], r.Options.Model()
	p.Put("<h2>The difference</h2>\n<p><strong>%s</strong> <span class=\"note\">%s</span></p>\n", d.Summary, otherRuns)
	p.Charts(r.gapChart())
	losses := func(name string, fp32, fp8, gap float64) []any {
		return []any{name, fmt.Sprintf("%.4f", fp32), fmt.Sprintf("%.4f", fp8), strings.ReplaceAll(gapCell(gap), " ", "\u00a0")}
	}
	rows := [][]any{losses("first loss", first.FP32.Loss, first.FP8.Loss, Gap(first.FP32.Loss, first.FP8.Loss)), losses(r.lastTenth(), r.FP32.Loss, r.FP8.Loss, r.gap(r.FP32.Loss, r.FP8.Loss))}
	if at := r.judgedAt(); at != nil {
		rows = append(rows, losses(fmt.Sprintf("held-out loss, after step %d", at.Step), at.FP32.HeldOut, at.FP8.HeldOut, r.heldOutGap(at.FP32.HeldOut, at.FP8.HeldOut)))
	}
	rows = append(rows, []any{"time", round(r.FP32.Time), round(r.FP8.Time), ""})
	p.Table(frame.Table{Class: "figures", Columns: frame.Columns("", "", "FP32", model, "gap"), Rows: rows})
	p.Charts(r.LossChart())
}

// lastTenth names the mean of the last losses.
func (r *Result) lastTenth() string {
	if r.Live.Written.IsZero() {
		return "final loss, mean of the last tenth"
	}
	return "loss so far, mean of the last tenth"
}

// putLosses adds what became of the values.
func (r *Result) putLosses(p *page.Page, v Diagnosis) {
	p.Put("<h2>What the operands lost</h2>\n")
	h := r.heatMap()
	if len(h.Columns) > 0 {
		p.Put("<p class=\"note\">Shown are the steps whose telemetry was kept, one in %s by --telemetry-every. The verdict is about all steps.</p>\n", r.Options.TelemetryEvery)
	}
	p.HeatMap(h)
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
}

// putTrained adds what was trained, and on what.
func (r *Result) putTrained(p *page.Page) {
	o, model := r.Options, r.Options.Model()
	p.Put(`<h2>What was trained</h2>
<p>%s parameters, %s of %s steps of %s &times; %s bytes of %s, seed %s.
%s: %s. Both models start from the same weights and see the same batches.</p>
<p>The text has %s bytes and the SHA-256 <code>%s</code>.</p>
`, r.Params, len(r.Points), o.Steps, o.Batch, o.Context, r.Text.Source, o.Seed, model, o.recipe(), r.Text.Bytes, r.Text.SHA256)
	frame.Each(&p.Body, "<p>%s</p>\n", r.Activations)
	frame.Each(&p.Body, "<p>%s</p>\n", r.Extensions)
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
