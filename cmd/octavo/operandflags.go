package main

import (
	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/operands"
	"github.com/octavo-fp8/octavo/tensor"
)

// operandsHelp is what gemm and verify say of operands.
const operandsHelp = `IN is one safetensors file with both operands, or two: the first of A, the
second of B. Instead of a tensor a flag may name a .npy file, or raw bytes with
their type and shape, such as x.bin:E4M3:64x128; if all flags do, there is no
IN. Codes have the type F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ, F4 (E2M1),
F6_E2M3 or F6_E3M2. Bytes (U8, |u1) with --a-format are codes too: one each or,
with --a-packed, several, as checkpoints hold E2M1. A tensor of any rank is a
matrix whose columns are its last dimension.

Scales are F32, F8_E8M0, F8_E4M3 (read as UE4M3) or bytes with --a-scale-format:
a grid [rows, columns] with one scale for each block; value = decode(code) *
scale. The scales of NAME are NAME_scale_inv by default, as octavo quantize
writes them. An outer scale, F32, multiplies or divides the values of the
tensor, of each row, or of each matrix of a stack: by default NAME_outer_scale
or NAME_outer_divisor, if the file has one. A block is RxC, such as 128x128,
where R or C may be "all"; "row" is 1xall and "tensor" is allxall. By default it
is the block that fits the shapes, with extents of 1, a power of two or equal
parts; if several fit, the error lists them.

--bias and --accumulate are looked up in B's file, then in A's.`

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
	optionalFlag(cmd, &o.Block, name+"-block", "RxC|row|tensor", "rows and columns that share a scale (default: what fits the shapes)", tensor.ParseBlock)
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
