package inspect

import (
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// printDetails prints all that is known of each tensor.
func (r *Report) printDetails(w io.Writer, tensors []*TensorReport) {
	fmt.Fprintln(w, "\ncrest is amax over rms:")
	for _, t := range tensors {
		fmt.Fprintln(w)
		t.print(w, r.Judge != "")
	}
}

func (t *TensorReport) print(w io.Writer, judged bool) {
	if t.File != "" {
		fmt.Fprintf(w, "%s\n", textout.Name(t.File))
	}
	fmt.Fprintf(w, "%s\n  %s", textout.Name(t.Name), t.DType)
	if t.isCodes && t.isBytes() {
		fmt.Fprintf(w, " of %s", t.Format)
	}
	fmt.Fprintf(w, " %v", t.Shape)
	if t.Values != nil {
		t.Values.print(w)
	}
	fmt.Fprintln(w)
	if t.Scheme != "" {
		fmt.Fprintf(w, "  dequantized as %s %v\n", t.Scheme, t.weightShape)
	}
	if s := t.Scales; s != nil {
		fmt.Fprintf(w, "  scales %s\n    %s %v, %.4g to %.4g\n", textout.Name(s.Name), s.DType, s.Shape, s.Min, s.Max)
	}
	for _, defect := range t.defects() {
		textout.Paragraph(w, "^ "+defect, "    ")
	}
	if len(t.Recipes) == 0 || !judged {
		return
	}
	of := t.Values.Elements
	columns := []column[RecipeReport]{
		{"recipe", true, func(p RecipeReport) string { return string(p.Profile) }},
		{"block", true, func(p RecipeReport) string { return p.Block }},
		{"satur.", false, func(p RecipeReport) string { return textout.Percent(p.Saturated, of) }},
		{"flushed", false, func(p RecipeReport) string { return textout.Percent(p.Flushed, of) }},
		{"row", false, func(p RecipeReport) string { return percent(p.RowError) }},
		{"block", false, func(p RecipeReport) string { return percent(p.BlockError) }},
		{"SQNR dB", false, func(p RecipeReport) string { return textout.Decibels(float64(p.SQNR)) }},
		{"scale", false, func(p RecipeReport) string { return fmt.Sprintf("%.3g", p.ScaleMin) }},
	}
	table := textTable(w, columns)
	for _, p := range t.Recipes {
		writeRow(table, columns, p)
		if p.BecameNonFinite > 0 {
			table.Note("%s", textout.Wrong(textout.Share(p.BecameNonFinite, of)+" became NaN or infinite with their scale"))
		}
	}
	table.Flush()
}

func (v *ValuesReport) print(w io.Writer) {
	switch {
	case v.Amax > 0:
		fmt.Fprintf(w, ", amax %.4g, crest %.3g, smallest %.4g, range %.1f bits", v.Amax, v.Crest, v.Smallest, v.Range)
	case v.Zeros > 0:
		fmt.Fprint(w, ", all finite values are 0")
	case v.Elements == 0:
		fmt.Fprint(w, ", empty")
	}
	if v.Largest != nil && v.Elements > 0 {
		fmt.Fprintf(w, "\n  %s of the values are zero, %s of the codes the largest", textout.Percent(v.Zeros, v.Elements), textout.Percent(*v.Largest, v.Elements))
	}
	if v.FirstNonFinite != nil {
		fmt.Fprintf(w, "\n  %d NaN, %d +Inf, %d -Inf, the first at element %d", v.NaN, v.PosInf, v.NegInf, *v.FirstNonFinite)
	}
}
