package comparison

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// lineWidth is that of a terminal.
const lineWidth = 80

// WriteTable writes the result for a terminal.
func (r *Result) WriteTable(w io.Writer) error {
	paragraph(w, fmt.Sprintf("%s, %d bytes; %d parameters; %d of %d steps of %d x %d bytes",
		r.Text.Source, r.Text.Bytes, r.Params, len(r.Points), r.Options.Steps, r.Options.Batch, r.Options.Context))
	paragraph(w, r.Options.Model()+": "+r.Options.recipe())
	for _, a := range r.Activations {
		paragraph(w, a.String())
	}
	for _, e := range r.Extensions {
		paragraph(w, e.String())
	}
	fmt.Fprintln(w)
	r.writeOutcomes(w)
	fmt.Fprintln(w)
	paragraph(w, r.Difference().Summary)
	fmt.Fprintln(w)
	r.writeLayers(w)
	r.writeExperts(w)
	if err := r.writeVerdict(w); err != nil {
		return err
	}
	if err := r.writeTrouble(w); err != nil {
		return err
	}
	return r.writeAlarms(w)
}

// paragraph writes text in lines that fit, and ends the last one.
func paragraph(w io.Writer, text string) error {
	_, err := fmt.Fprintln(w, textout.Wrap(text, lineWidth, ""))
	return err
}

func (r *Result) writeOutcomes(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	defer t.Flush()
	fmt.Fprintf(t, "\tFP32\t%s\tgap\t\n", r.Options.Model())
	first := r.Points[0]
	fmt.Fprintf(t, "first loss\t%.4f\t%.4f\t%+.3f %%\t\n", first.FP32.Loss, first.FP8.Loss, Gap(first.FP32.Loss, first.FP8.Loss))
	fmt.Fprintf(t, "final loss, last tenth\t%.4f\t%.4f\t%+.3f %%\t\n", r.FP32.Loss, r.FP8.Loss, Gap(r.FP32.Loss, r.FP8.Loss))
	fmt.Fprintf(t, "held-out loss\t%.4f\t%.4f\t%+.3f %%\t\n", r.FP32.HeldOut, r.FP8.HeldOut, Gap(r.FP32.HeldOut, r.FP8.HeldOut))
	fmt.Fprintf(t, "time\t%v\t%v\t%+.0f %%\t\n", round(r.FP32.Time), round(r.FP8.Time), Gap(r.FP32.Time.Seconds(), r.FP8.Time.Seconds()))
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// writeLayers writes a line for each layer, which fits as long as its name is not very
// long.
func (r *Result) writeLayers(w io.Writer) {
	title := r.Options.Model() + " layer"
	layers := r.Layers()
	width := len(title)
	for _, l := range layers {
		width = max(width, utf8.RuneCountInString(l.Name))
	}
	fmt.Fprintf(w, "%*s %20s %20s %20s\n", width, "", "input", "weight", "gradient")
	fmt.Fprintf(w, "%*s%s\n", width, title, strings.Repeat(fmt.Sprintf(" %8s %5s %5s", "amax", "sat%", "zero%"), 3))
	for _, l := range layers {
		fmt.Fprintf(w, "%*s", width, l.Name)
		before := " "
		for _, o := range []Operand{l.Input, l.Weight, l.Gradient} {
			fmt.Fprintf(w, "%s%8.3g%s%5s%s%5s", before, o.Stats.Amax, mark(o.NonFiniteHealth),
				fiveDigits(o.Saturated()), mark(o.SaturatedHealth), fiveDigits(o.Underflowed()))
			before = mark(o.FlushedHealth)
		}
		fmt.Fprintln(w, strings.TrimSpace(before))
	}
}

// fiveDigits formats a number from 0 to 100 in five characters.
func fiveDigits(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64)[:5] }
