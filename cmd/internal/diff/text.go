package diff

import (
	"fmt"
	"io"
	"math"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// WriteText writes the report for people, with the given number of tensors that differ most; 0
// is all that are not the same.
func (r *Report) WriteText(stdout io.Writer, top int) error {
	w := textout.NewWriter(stdout)
	textout.Paragraph(w, r.Summary(), "")
	fmt.Fprintln(w)
	for _, s := range []struct {
		name string
		Side
	}{{"A", r.A}, {"B", r.B}} {
		layout := s.Layout
		if layout == "" {
			layout = "no known layout"
		}
		fmt.Fprintf(w, "%s: %s, %s, tensors: %d\n", s.name, textout.Name(s.Path), layout, s.Weights)
		if n := checkpoint.UnreadTensors(s.NotJudged); n > 0 {
			text := fmt.Sprintf("not judged but by bytes: %s: %s", textout.Count(n, "tensor"), checkpoint.UnreadMethods(s.NotJudged))
			textout.Paragraph(w, textout.Line(text), "   ")
		}
	}
	r.writeDifferences(w, top)
	r.writeProofs(w)
	return w.Flush()
}

func (r *Report) writeDifferences(w io.Writer, top int) {
	n := 0
	for n < len(r.differences) && r.differences[n].Same < checkpoint.SameValues {
		n++
	}
	if n == 0 {
		return
	}
	fmt.Fprintln(w)
	if top > 0 && top < n {
		fmt.Fprintf(w, "The %d of %d tensors that differ most (--top 0 shows all):\n\n", top, n)
		n = top
	}
	t := textout.NewTable(w)
	fmt.Fprintln(t, "differ\tlargest\tSQNR dB\ttensor")
	for i := range n {
		d := &r.differences[i]
		name, share := textout.Name(d.Name), textout.Percent(d.Differ, d.Elements)
		if d.Why != "" {
			share = "-"
		}
		share = textout.WrongIf(!r.Weights[i].Within, share)
		if d.Why != "" {
			fmt.Fprintf(t, "%s\t-\t-\t%s\n", share, name)
			t.Note("%s", textout.Line(d.Why))
			continue
		}
		fmt.Fprintf(t, "%s\t%.4g\t%s\t%s\n", share, d.Error.Largest, decibels(d), name)
		for _, note := range r.notes(i) {
			t.Note("%s", note)
		}
	}
	t.Flush()
}

// decibels says nothing of what differs in NaN or infinities, or in bytes that are no numbers.
func decibels(d *checkpoint.Difference) string {
	if x := d.SQNR(); !math.IsInf(x, -1) {
		return textout.Decibels(x)
	}
	return "-inf"
}

// notes say where a tensor differs.
func (r *Report) notes(i int) (notes []string) {
	d := &r.differences[i]
	if d.NonFinite > 0 {
		notes = append(notes, fmt.Sprintf("%d NaN or infinite in one alone, the first at %v", d.NonFinite, d.Index(d.FirstNonFinite)))
	}
	where := ""
	switch {
	case d.Same == checkpoint.RoundedValues:
		where = fmt.Sprintf("the same in %s", d.Type)
	case d.Error.Largest > 0:
		where = fmt.Sprintf("the first at %v, the largest at %v", d.Index(d.First), d.Index(d.Error.Where))
	case d.Differ > d.NonFinite:
		where = fmt.Sprintf("the first at %v", d.Index(d.First))
	}
	if where != "" {
		if r.Weights[i].Within {
			where += ": allowed"
		}
		notes = append(notes, where)
	}
	if d.Inputs {
		notes = append(notes, fmt.Sprintf("the scale of the input is %v and %v", d.InputA, d.InputB))
	}
	return notes
}

func (r *Report) writeProofs(w io.Writer) {
	if r.Proofs == nil {
		return
	}
	holds := 0
	for _, p := range r.Proofs {
		if p.Holds {
			holds++
		}
	}
	fmt.Fprintf(w, "\n%d of %d tensors of codes of A can be stored as those of B without loss.\n", holds, len(r.Proofs))
	for _, p := range r.Proofs {
		if p.Holds {
			continue
		}
		fmt.Fprintf(w, "  %s\n", textout.Shorten(textout.Name(p.Name), 78))
		textout.Paragraph(w, fmt.Sprintf("^ %s: block [%d, %d] of matrix %d: %s", p.To, p.Block[1], p.Block[2], p.Block[0], p.Why), "    ")
	}
}
