package inspect

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/cmd/internal/textout"
)

// WriteJSON prints all reports as one object.
func (in *Inspector) WriteJSON(w io.Writer, path string) error {
	report := fileReport{File: path, Metadata: in.File.Metadata(), Format: in.Format.String(), Tensors: []tensorReport{}}
	err := in.each(func(r tensorReport) error {
		report.Tensors = append(report.Tensors, r)
		return nil
	})
	if err != nil {
		return err
	}
	return jsonout.Print(w, report)
}

// WriteText prints each report when it is ready.
func (in *Inspector) WriteText(w io.Writer) error {
	for _, key := range slices.Sorted(maps.Keys(in.File.Metadata())) {
		fmt.Fprintf(w, "metadata %s: %.80s\n", textout.Name(key), textout.Name(in.File.Metadata()[key]))
	}
	if len(in.File.Metadata()) > 0 {
		fmt.Fprintln(w)
	}
	return in.each(func(r tensorReport) error {
		r.print(w)
		_, err := fmt.Fprintln(w)
		return err
	})
}

func (r *tensorReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s  %s %v", textout.Name(r.Name), r.DType, r.Shape)
	if v := r.Values; v != nil {
		v.print(w)
	}
	fmt.Fprintln(w)
	if s := r.Scales; s != nil {
		fmt.Fprintf(w, "  scales %s  %s %v  %.4g to %.4g\n", textout.Name(s.Name), s.DType, s.Shape, s.Min, s.Max)
	}
	if len(r.Recipes) == 0 {
		return
	}
	fmt.Fprintf(w, "  %-23s %-8s %17s %17s %8s %11s %11s\n",
		"recipe", "block", "saturated", "flushed", "SQNR dB", "scale min", "max")
	for _, p := range r.Recipes {
		fmt.Fprintf(w, "  %-23s %-8s %17s %17s %8.2f %11.4g %11.4g\n", p.Profile, p.Block,
			textout.Share(p.Saturated, r.Values.Elements), textout.Share(p.Flushed, r.Values.Elements), p.SQNR, p.ScaleMin, p.ScaleMax)
		if p.BecameNonFinite > 0 {
			fmt.Fprintf(w, "    ^ %s became NaN or infinite with their scale\n", textout.Share(p.BecameNonFinite, r.Values.Elements))
		}
	}
}

func (v *valuesReport) print(w io.Writer) {
	switch {
	case v.Amax > 0:
		fmt.Fprintf(w, "  amax %.4g  smallest %.4g  range %.1f bits", v.Amax, v.Smallest, v.Range)
	case v.Zeros > 0:
		fmt.Fprint(w, "  all finite values are 0")
	case v.Elements == 0:
		fmt.Fprint(w, "  empty")
	}
	if v.FirstNonFinite != nil {
		fmt.Fprintf(w, "\n  %d NaN, %d +Inf, %d -Inf, the first at element %d", v.NaN, v.PosInf, v.NegInf, *v.FirstNonFinite)
	}
}
