package comparison

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/telemetry"
)

// WriteTable writes the result for a terminal: what was found, and then what led to it, in the
// order of the page.
func (r *Result) WriteTable(stdout io.Writer) error {
	w, v := textout.NewWriter(stdout), r.Diagnosis()
	for _, line := range r.Headline() {
		paragraph(w, line)
		fmt.Fprintln(w)
	}
	paragraph(w, v.Summary+" Not judged: "+strings.Join(v.NotJudged, "; ")+".")
	for _, line := range r.badLines() {
		paragraph(w, line)
	}
	fmt.Fprintln(w)
	paragraph(w, r.Difference().Summary+" "+otherRuns)
	fmt.Fprintln(w)
	r.writeOutcomes(w)
	writeFindings(w, v)
	r.writeSpikes(w)
	r.writeAlarms(w)
	r.writeExperts(w)
	fmt.Fprintln(w)
	if len(v.Findings) > 0 {
		paragraph(w, "Marks below: ! sick, ? suspect, by the worst steps; shares are those of all.")
	}
	r.writeLayers(w)
	fmt.Fprintln(w)
	r.writeTrained(w)
	return w.Flush()
}

// otherRuns is what the difference says nothing of.
const otherRuns = "Not judged: other seeds, texts and sizes."

// paragraph writes text in lines that fit, and ends the last one.
func paragraph(w io.Writer, text string) { textout.Paragraph(w, text, "") }

func (r *Result) writeTrained(w io.Writer) {
	paragraph(w, fmt.Sprintf("%s, %d bytes; %d parameters; %d of %d steps of %d x %d bytes",
		r.Text.Source, r.Text.Bytes, r.Params, len(r.Points), r.Options.Steps, r.Options.Batch, r.Options.Context))
	paragraph(w, r.Options.Model()+": "+r.Options.recipe())
	for _, a := range r.Activations {
		paragraph(w, a.String())
	}
	for _, e := range r.Extensions {
		paragraph(w, e.String())
	}
}

func (r *Result) writeOutcomes(w io.Writer) {
	t := textout.NewTable(w)
	fmt.Fprintf(t, "\tFP32\t%s\tgap\n", r.Options.Model())
	first := r.Points[0]
	for _, row := range []struct {
		name           string
		fp32, fp8, gap float64
	}{
		{"first loss", first.FP32.Loss, first.FP8.Loss, Gap(first.FP32.Loss, first.FP8.Loss)},
		{"final loss, last tenth", r.FP32.Loss, r.FP8.Loss, r.gap(r.FP32.Loss, r.FP8.Loss)},
		{"held-out loss", r.FP32.HeldOut, r.FP8.HeldOut, r.heldOutGap(r.FP32.HeldOut, r.FP8.HeldOut)},
	} {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", row.name, lossCell(row.fp32), lossCell(row.fp8), gapCell(row.gap))
	}
	fp32, fp8 := round(r.FP32.Time), round(r.FP8.Time)
	fmt.Fprintf(t, "time\t%v\t%v\t%+.0f %%\n", fp32, fp8, Gap(fp32.Seconds(), fp8.Seconds()))
	t.Flush()
}

// lossCell is a loss, which is wrong if it is not finite.
func lossCell(x float64) string { return textout.WrongIf(x-x != 0, fmt.Sprintf("%.4f", x)) }

// gapCell is a gap, or a dash where it is not judged.
func gapCell(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%+.3f %%", x)
}

// round leaves three digits of a time, or all seconds.
func round(d time.Duration) time.Duration {
	unit := time.Microsecond
	for unit < time.Second && d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}

// writeLayers writes a line for each layer, with marks behind what is not healthy.
func (r *Result) writeLayers(w io.Writer) {
	t := textout.NewTable(w)
	t.Most = 99
	columns := []struct {
		name string
		cell func(o Operand) (string, telemetry.Health)
	}{
		{"amax", func(o Operand) (string, telemetry.Health) {
			return fmt.Sprintf("%.3g", o.Stats.Amax), o.NonFiniteHealth
		}},
		{"sat%", func(o Operand) (string, telemetry.Health) { return fiveDigits(o.Saturated()), o.SaturatedHealth }},
		{"zero%", func(o Operand) (string, telemetry.Health) { return fiveDigits(o.Underflowed()), o.FlushedHealth }},
	}
	fmt.Fprintf(t, "%s layer", r.Options.Model())
	for _, c := range columns {
		fmt.Fprintf(t, "\tinput %s\tweight %[1]s\tgrad %[1]s", c.name)
	}
	for _, l := range r.Layers() {
		fmt.Fprintf(t, "\n%s", l.Name)
		for _, c := range columns {
			for _, o := range []Operand{l.Input, l.Weight, l.Gradient} {
				text, health := c.cell(o)
				fmt.Fprintf(t, "\t%s", textout.WrongIf(health == telemetry.Sick, text+mark(health)))
			}
		}
	}
	t.Flush()
}

// fiveDigits formats a number from 0 to 100 in five characters.
func fiveDigits(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64)[:5] }
