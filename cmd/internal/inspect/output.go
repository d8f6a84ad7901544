package inspect

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/cmd/internal/textout"
)

// WriteJSON prints all reports as one object, unless there is an error.
func (in *Inspector) WriteJSON(ctx context.Context, w io.Writer, path string) error {
	report := fileReport{File: path, Metadata: in.File.Metadata(), Format: in.Format.String()}
	return jsonout.PrintList(w, report, "tensors", func(item func(any) error) error {
		return in.each(ctx, func(r tensorReport) error { return item(r) })
	})
}

// largeTensor is a size in bytes from which on a report may take a while.
const largeTensor = 1 << 16

// WriteText prints each report when it is ready, but small ones together.
func (in *Inspector) WriteText(ctx context.Context, stdout io.Writer) error {
	w := bufio.NewWriter(stdout)
	err := in.writeText(ctx, w)
	if e := w.Flush(); err == nil {
		err = e
	}
	return err
}

func (in *Inspector) writeText(ctx context.Context, w *bufio.Writer) error {
	for _, key := range slices.Sorted(maps.Keys(in.File.Metadata())) {
		fmt.Fprintf(w, "metadata %s: %.80s\n", textout.Name(key), textout.Name(in.File.Metadata()[key]))
	}
	if len(in.File.Metadata()) > 0 {
		fmt.Fprintln(w)
	}
	return in.each(ctx, func(r tensorReport) error {
		r.print(w)
		_, err := fmt.Fprintln(w)
		if r.Bytes >= largeTensor && err == nil {
			err = w.Flush()
		}
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
