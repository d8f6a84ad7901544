package main

import (
	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/tensor"
)

// productFlags say what is multiplied and what is added to it.
type productFlags struct{ operands.Product }

// add adds the flags of a command that reads a product.
func (p *productFlags) add(cmd *cobra.Command) {
	p.addFlags(cmd, " (required)")
	markRequired(cmd, "a", "b")
}

// addFlags adds the flags, with a note on those of the codes.
func (p *productFlags) addFlags(cmd *cobra.Command, note string) {
	addOperand(cmd, &p.A, "a", "[M, K]"+note)
	addOperand(cmd, &p.B, "b", "[N, K]"+note)
	f := cmd.Flags()
	f.StringVar(&p.Bias, "bias", "", "`NAME` of a tensor [N], F32, to add to every row")
	f.StringVar(&p.Accumulate, "accumulate", "", "`NAME` of the old C [M, N], of the type of C, to add the product to")
	f.BoolVar(&p.BFloat16, "npy-bf16", false, "arrays of type <u2 are bfloat16")
}

func addOperand(cmd *cobra.Command, o *operands.Operand, name, shape string) {
	f := cmd.Flags()
	f.StringVar(&o.Codes, name, "", "`NAME` of the tensor of codes "+shape)
	addCodes(cmd, &o.Scales, &o.Format, name, "of its scales")
	optionalFlag(cmd, &o.Block, name+"-block", "RxC|row|tensor", "rows and columns that share a scale (default: what fits the shapes)", tensor.ParseBlock, "row", "tensor")
	f.BoolVar(&o.Packed, name+"-packed", false, "each byte holds several codes, the first in the lowest bits")
	f.StringVar(&o.Outer, name+"-outer", "", "`NAME` of its outer scales (default: that of the codes with _outer_scale or _outer_divisor)")
	f.BoolVar(&o.OuterDivides, name+"-outer-divides", false, "outer scales are divisors")
	optionalFlag(cmd, &o.ScaleFormat, name+"-scale-format", "e8m0|ue4m3",
		"format of scales that are bytes (default: what metadata say; e8m0 in a file of their own)", tensor.ParseScaleFormat, "e8m0", "ue4m3")
}

// addCodes adds the flags that operands of products and of attention have in common.
func addCodes(cmd *cobra.Command, scales *string, format **fp8.Format, name, which string) {
	cmd.Flags().StringVar(scales, name+"-scales", "", "`NAME` "+which+" (default: that of the codes with _scale_inv)")
	optionalFlag(cmd, format, name+"-format", "FORMAT", "format of codes that are bytes: e4m3, e2m1 and so on", fp8.ParseFormat, formatNames()...)
}

// read lists the files that are read.
func (p *productFlags) read() []string {
	files := append([]string{p.Got}, p.Files...)
	for _, name := range []string{p.A.Codes, p.A.Scales, p.A.Outer, p.B.Codes, p.B.Scales, p.B.Outer, p.Bias, p.Accumulate, p.Got} {
		if path, ok := operands.Path(name); ok {
			files = append(files, path)
		}
	}
	return files
}

// productFiles is the Args of a command that takes the files of a product.
var productFiles = takes(0, 2, "two files at most, of A and of B")
