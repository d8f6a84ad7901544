// Package quantize is what octavo quantize prints of a summary.
package quantize

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/quantize"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// WriteText writes a summary for people, with the given number of tensors that lost
// most; 0 is all.
func WriteText(stdout io.Writer, s *quantize.Summary, top int) error {
	w := textout.NewWriter(stdout)
	fmt.Fprintf(w, "%s: %s %s, block %s\n\n", textout.Name(s.Output), s.Profile, s.Format, s.Block)
	writeTotals(w, s)
	if len(s.Kept) > 0 {
		textout.Paragraph(w, "Left as they are: "+partsOf(s.Kept)+".", "")
		fmt.Fprintln(w)
	}
	if encoded := encodedParts(s.Tensors); len(encoded) > 0 {
		textout.Paragraph(w, "Quantized, though models keep such as they are: "+partsOf(encoded)+". --keep leaves them.", "")
		fmt.Fprintln(w)
	}
	writeTensors(w, s.Tensors, top)
	became := ""
	if s.BecameNonFinite > 0 {
		became = fmt.Sprintf(", %s became NaN or infinite", textout.Share(s.BecameNonFinite, s.Elements))
	}
	textout.Paragraph(w, fmt.Sprintf("of %d values quantized: %s saturated, %s flushed to zero%s",
		s.Elements, textout.Share(s.Saturated, s.Elements), textout.Share(s.Flushed, s.Elements), became), "")
	fmt.Fprintf(w, "%d bytes read in %.3g s: %.3g GB/s\n", s.BytesRead, s.Seconds, s.Rate)
	return w.Flush()
}

func writeTotals(w io.Writer, s *quantize.Summary) {
	table := textout.NewTable(w)
	fmt.Fprintln(table, "\ttensors\tbytes before\tbytes after\t")
	all := quantize.TensorCount{}
	for _, row := range []struct {
		name  string
		count quantize.TensorCount
	}{{"quantized", s.Quantized}, {"copied", s.Copied}} {
		writeCount(table, row.name, row.count)
		all.Tensors += row.count.Tensors
		all.BytesBefore += row.count.BytesBefore
		all.BytesAfter += row.count.BytesAfter
	}
	writeCount(table, "all", all)
	table.Flush()
	if s.Requantized > 0 {
		fmt.Fprintf(w, "\n%d of the quantized tensors were codes before: their losses are those of the second time.\n", s.Requantized)
	}
	fmt.Fprintln(w)
}

// encodedParts are the parts of models among the tensors that were quantized.
func encodedParts(all []quantize.TensorLoss) (parts []quantize.KeptTensor) {
	for _, t := range all {
		if p := checkpoint.Kept(t.Name); p != nil {
			parts = append(parts, quantize.KeptTensor{Name: t.Name, Part: p.Name, Why: p.Why})
		}
	}
	return parts
}

// partsOf names parts of models, and why they stay: of each the first.
func partsOf(all []quantize.KeptTensor) string {
	var said []string
	counts := map[string]int{} // of parts that are not said yet
	for _, k := range all {
		counts[k.Part]++
	}
	for _, k := range all {
		switch n := counts[k.Part]; n {
		case 0:
		case 1:
			said = append(said, fmt.Sprintf("the %s %s (%s)", k.Part, textout.Name(k.Name), k.Why))
		default:
			said = append(said, fmt.Sprintf("%s, such as %s (%s)", textout.Count(n, k.Part), textout.Name(k.Name), k.Why))
		}
		delete(counts, k.Part)
	}
	return strings.Join(said, "; ")
}

func writeCount(w io.Writer, name string, c quantize.TensorCount) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", name, c.Tensors, c.BytesBefore, c.BytesAfter)
}

// writeTensors writes a line for each of the tensors that lost most.
func writeTensors(w io.Writer, tensors []quantize.TensorLoss, top int) {
	tensors = slices.Clone(tensors)
	slices.SortStableFunc(tensors, func(a, b quantize.TensorLoss) int {
		return cmp.Compare(textout.LossOrder(a.BecameNonFinite, float64(a.SQNR)),
			textout.LossOrder(b.BecameNonFinite, float64(b.SQNR)))
	})
	if top > 0 && top < len(tensors) {
		fmt.Fprintf(w, "The %d of %d tensors that lost most (--detail shows all):\n\n", top, len(tensors))
		tensors = tensors[:top]
	}
	table := textout.NewTable(w)
	fmt.Fprintln(table, "SQNR dB\tsaturated\tflushed\tblock\ttensor")
	for _, t := range tensors {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n",
			textout.Decibels(float64(t.SQNR)), textout.Percent(t.Saturated, t.Elements), textout.Percent(t.Flushed, t.Elements), t.Block, textout.Shorten(textout.Name(t.Name), nameWidth))
		if t.BecameNonFinite > 0 {
			table.Note("%s", textout.Wrong(textout.Share(t.BecameNonFinite, t.Elements)+" became NaN or infinite with their scale"))
		}
	}
	table.Flush()
	fmt.Fprintln(w)
}

const nameWidth = 80 - 8 - 9 - 9 - 7 - 4*2
