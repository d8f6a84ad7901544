package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/fp8"
)

const inspectLong = `Inspect lists the tensors of a safetensors file and says what FP8 would do to
them. Of a tensor of floating-point values it prints

  amax      the largest finite magnitude
  smallest  the smallest nonzero magnitude
  range     log2 amax - log2 smallest, in bits

and of a float matrix (two or more dimensions: F64, F32, F16 or BF16), for every
recipe but te-delayed, which needs the amax of earlier steps, quantized in the
block that the recipe's library gives to weights,

  saturated  finite values too large for their scale
  flushed    values that are not zero and would become zero (underflow)
  SQNR       signal-to-quantization-noise ratio in decibels, over finite values
  scale      the smallest and largest dequantization scale

and below a recipe under whose scales finite values would become NaN or
infinite, how many.

The values of FP8 codes are those of the codes alone; where the tensor NAME has
scales in NAME_scale_inv, their shape and range are printed.

With --json everything is one object. NaN and infinities are the strings "NaN",
"+Inf" and "-Inf"; smallest is 0 where all values are 0, and rangeBits is then
"NaN", as is the SQNR.`

const inspectExample = `  octavo inspect model.safetensors
  octavo inspect model.safetensors --only 'layers\.0\.mlp' --format e5m2
  octavo inspect model.safetensors --json | jq '.tensors[] | {name, amax: .values.amax}'`

func newInspectCommand() *cobra.Command {
	var format fp8.Format
	var only *regexp.Regexp
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "inspect FILE.safetensors",
		Short:   "Say what is in a file and what FP8 would do to it",
		Long:    inspectLong,
		Example: inspectExample,
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			i := inspector{file: file, format: format, only: only}
			if asJSON {
				return i.writeJSON(cmd.OutOrStdout(), args[0])
			}
			return i.writeText(cmd.OutOrStdout())
		},
	}
	formatFlag(cmd, &format, "e4m3", "format that the recipes encode to")
	onlyFlag(cmd, &only, "inspect only the tensors whose name matches")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// writeJSON prints all reports as one object.
func (in *inspector) writeJSON(w io.Writer, path string) error {
	report := fileReport{File: path, Metadata: in.file.Metadata(), Format: in.format.String(), Tensors: []tensorReport{}}
	err := in.each(func(r tensorReport) error {
		report.Tensors = append(report.Tensors, r)
		return nil
	})
	if err != nil {
		return err
	}
	return jsonout.Print(w, report)
}

// writeText prints each report when it is ready.
func (in *inspector) writeText(w io.Writer) error {
	for _, key := range slices.Sorted(maps.Keys(in.file.Metadata())) {
		fmt.Fprintf(w, "metadata %s: %.80s\n", printable(key), printable(in.file.Metadata()[key]))
	}
	if len(in.file.Metadata()) > 0 {
		fmt.Fprintln(w)
	}
	return in.each(func(r tensorReport) error {
		r.print(w)
		_, err := fmt.Fprintln(w)
		return err
	})
}

// printable returns text from a file as it is, or quoted if it could upset a
// terminal or a line.
func printable(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

func (r *tensorReport) print(w io.Writer) {
	fmt.Fprintf(w, "%s  %s %v", printable(r.Name), r.DType, r.Shape)
	if v := r.Values; v != nil {
		v.print(w)
	}
	fmt.Fprintln(w)
	if s := r.Scales; s != nil {
		fmt.Fprintf(w, "  scales %s  %s %v  %.4g to %.4g\n", printable(s.Name), s.DType, s.Shape, s.Min, s.Max)
	}
	if len(r.Recipes) == 0 {
		return
	}
	fmt.Fprintf(w, "  %-23s %-8s %17s %17s %8s %11s %11s\n",
		"recipe", "block", "saturated", "flushed", "SQNR dB", "scale min", "max")
	for _, p := range r.Recipes {
		fmt.Fprintf(w, "  %-23s %-8s %17s %17s %8.2f %11.4g %11.4g\n", p.Profile, p.Block,
			share(p.Saturated, r.Values.Elements), share(p.Flushed, r.Values.Elements), p.SQNR, p.ScaleMin, p.ScaleMax)
		if p.BecameNonFinite > 0 {
			fmt.Fprintf(w, "    ^ %s became NaN or infinite with their scale\n", share(p.BecameNonFinite, r.Values.Elements))
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
