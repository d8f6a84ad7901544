package quantize

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// WriteText writes the summary for people, with the given number of tensors that lost
// most; 0 is all.
func (s *Summary) WriteText(stdout io.Writer, top int) error {
	w := bufio.NewWriter(stdout)
	fmt.Fprintf(w, "%s: %s %s, block %s\n\n", textout.Name(s.Output), s.Profile, s.Format, s.Block)
	s.writeTotals(w)
	s.writeTensors(w, top)
	became := ""
	if s.BecameNonFinite > 0 {
		became = fmt.Sprintf(", %s became NaN or infinite", textout.Share(s.BecameNonFinite, s.Elements))
	}
	fmt.Fprintln(w, textout.Wrap(fmt.Sprintf("of %d values quantized: %s saturated, %s flushed to zero%s",
		s.Elements, textout.Share(s.Saturated, s.Elements), textout.Share(s.Flushed, s.Elements), became), 80, ""))
	fmt.Fprintf(w, "%d bytes read in %.3g s: %.3g GB/s\n", s.BytesRead, s.Seconds, s.Rate)
	return w.Flush()
}

func (s *Summary) writeTotals(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\ttensors\tbytes before\tbytes after\t")
	all := TensorCount{}
	for _, row := range []struct {
		name  string
		count TensorCount
	}{{"quantized", s.Quantized}, {"copied", s.Copied}} {
		row.count.print(table, row.name)
		all.Tensors += row.count.Tensors
		all.BytesBefore += row.count.BytesBefore
		all.BytesAfter += row.count.BytesAfter
	}
	all.print(table, "all")
	table.Flush()
	if s.Requantized > 0 {
		fmt.Fprintf(w, "\n%d of the quantized tensors were codes before: their losses are those of the second time.\n", s.Requantized)
	}
	fmt.Fprintln(w)
}

func (c TensorCount) print(w io.Writer, name string) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", name, c.Tensors, c.BytesBefore, c.BytesAfter)
}

// writeTensors writes a line for each of the tensors that lost most.
func (s *Summary) writeTensors(w io.Writer, top int) {
	tensors := slices.Clone(s.Tensors)
	slices.SortStableFunc(tensors, func(a, b TensorLoss) int { return cmp.Compare(a.rank(), b.rank()) })
	if top > 0 && top < len(tensors) {
		fmt.Fprintf(w, "The %d of %d tensors that lost most (--detail shows all):\n\n", top, len(tensors))
		tensors = tensors[:top]
	}
	fmt.Fprintf(w, "%8s  %9s  %9s  %-7s  %s\n", "SQNR dB", "saturated", "flushed", "block", "tensor")
	for _, t := range tensors {
		fmt.Fprintf(w, "%8s  %9s  %9s  %-7s  %s\n",
			textout.Decibels(float64(t.SQNR)), textout.Percent(t.Saturated, t.Elements), textout.Percent(t.Flushed, t.Elements), t.Block, textout.Shorten(textout.Name(t.Name), nameWidth))
		if t.BecameNonFinite > 0 {
			fmt.Fprintf(w, "    ^ %s became NaN or infinite with their scale\n", textout.Share(t.BecameNonFinite, t.Elements))
		}
	}
	fmt.Fprintln(w)
}

const nameWidth = 80 - 8 - 9 - 9 - 7 - 4*2

// rank orders tensors by what they lost: those with values that became NaN first, then by
// SQNR; those that had nothing to lose last.
func (t *TensorLoss) rank() float64 {
	switch {
	case t.BecameNonFinite > 0:
		return math.Inf(-1)
	case t.SQNR != t.SQNR:
		return math.Inf(1)
	}
	return float64(t.SQNR)
}
