package comparison

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/octavo-fp8/octavo/cmd/internal/textout"
)

// lineWidth is that of a terminal.
const lineWidth = 80

// WriteTable writes the result for a terminal.
func (r *Result) WriteTable(w io.Writer) error {
	paragraph(w, fmt.Sprintf("%s, %d bytes; %d parameters; %d of %d steps of %d x %d bytes",
		r.Text.Source, r.Text.Bytes, r.Params, len(r.Points), r.Options.Steps, r.Options.Batch, r.Options.Context))
	paragraph(w, "FP8: "+r.Options.recipe())
	for _, e := range r.Extensions {
		paragraph(w, e.String())
	}
	fmt.Fprintln(w)
	r.writeOutcomes(w)
	fmt.Fprintln(w)
	r.writeLayers(w)
	if err := r.writeNonFinite(w); err != nil {
		return err
	}
	return r.writeTrouble(w)
}

// paragraph writes text in lines that fit, and ends the last one.
func paragraph(w io.Writer, text string) error {
	_, err := fmt.Fprintln(w, textout.Wrap(text, lineWidth, ""))
	return err
}

func (r *Result) writeOutcomes(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	defer t.Flush()
	fmt.Fprintln(t, "\tFP32\tFP8\tgap\t")
	first := r.Points[0]
	fmt.Fprintf(t, "first loss\t%.4f\t%.4f\t%+.3f %%\t\n", first.FP32.Loss, first.FP8.Loss, Gap(first.FP32.Loss, first.FP8.Loss))
	fmt.Fprintf(t, "final loss, last tenth\t%.4f\t%.4f\t%+.3f %%\t\n", r.FP32.Loss, r.FP8.Loss, Gap(r.FP32.Loss, r.FP8.Loss))
	fmt.Fprintf(t, "held-out loss\t%.4f\t%.4f\t%+.3f %%\t\n", r.FP32.HeldOut, r.FP8.HeldOut, Gap(r.FP32.HeldOut, r.FP8.HeldOut))
	fmt.Fprintf(t, "time\t%v\t%v\t%+.0f %%\t\n", round(r.FP32.Time), round(r.FP8.Time), Gap(r.FP32.Time.Seconds(), r.FP8.Time.Seconds()))
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

func (r *Result) writeLayers(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	defer t.Flush()
	fmt.Fprintln(t, "FP8 layer\tinput amax\tsat %\tunder %\tweight amax\tsat %\tunder %\tgradient amax\tsat %\tunder %\t")
	for _, l := range r.Layers() {
		fmt.Fprint(t, l.Name)
		for _, o := range []Operand{l.Input, l.Weight, l.Gradient} {
			fmt.Fprintf(t, "\t%.3g\t%.3f\t%.3f", o.Stats.Amax, o.Saturated(), o.Underflowed())
		}
		fmt.Fprintln(t, "\t")
	}
}

func (r *Result) writeNonFinite(w io.Writer) (err error) {
	became := r.BecameNonFinite()
	if r.NonFinite == nil && became == 0 {
		_, err = fmt.Fprintln(w, "\nNo NaN or infinity met any FP8 product.")
	}
	if n := r.NonFinite; n != nil {
		_, err = fmt.Fprintf(w, "\nFirst non-finite value: %v at element %d of %s, %s, step %d.\n", n.Value, n.Index, n.Tensor, n.Op, n.Step)
	}
	if became > 0 {
		_, err = fmt.Fprintf(w, "\n%d finite values became NaN or infinite in FP8.\n", became)
	}
	return err
}
