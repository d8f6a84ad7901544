package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle/operands"
	"github.com/octavo-fp8/octavo/tensor"
)

// operandsHelp is what gemm and verify say of operands.
const operandsHelp = `IN is one safetensors file with both operands, or two: the first of A, the
second of B. Instead of a tensor a flag may name a .npy file, or raw bytes with
their type and shape, such as x.bin:E4M3:64x128; if all do, there is no IN.
Operands are codes of type F8_E4M3, F8_E5M2, F8_E4M3FNUZ, F8_E5M2FNUZ, F4, which
is E2M1, F6_E2M3 or F6_E3M2, or bytes (U8, |u1) with --a-format, one code each
or, with --a-packed, several, as checkpoints hold E2M1. A tensor of any rank is
a matrix whose columns are its last dimension.

Scales are F32, F8_E8M0, F8_E4M3, which is then UE4M3, or bytes (U8, |u1) with
--a-scale-format, as checkpoints hold E8M0: a grid [rows, columns] of one for
each block, value = decode(code) * scale. Those of NAME are by default
NAME_scale_inv, as octavo quantize writes them. Values may be times or divided
by an outer scale, F32, of the tensor, of each row or of each matrix of a stack:
by default NAME_outer_scale or NAME_outer_divisor, if there is one.
A block is RxC, such as 128x128, where R or C may be "all"; "row" is 1xall and
"tensor" is allxall. By default it is the one of extents 1, a power of two, or
equal parts that fits the shapes; if several fit, the error lists them.

--bias and --accumulate are looked for in B's file and then in A's.`

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
	f.StringVar(&p.Bias, "bias", "", "`NAME` of a tensor [N], F32, that is added to every row")
	f.StringVar(&p.Accumulate, "accumulate", "", "`NAME` of the old C [M, N], of the type of C, to which the product is added")
	f.BoolVar(&p.BFloat16, "npy-bf16", false, "arrays of type <u2 are bfloat16")
}

func addOperand(cmd *cobra.Command, o *operands.Operand, name, shape string) {
	f := cmd.Flags()
	f.StringVar(&o.Codes, name, "", fmt.Sprintf("`NAME` of the tensor of codes %s", shape))
	f.StringVar(&o.Scales, name+"-scales", "", "`NAME` of the tensor of its scales (default: that of the codes and _scale_inv)")
	parseBlock := func(text string) (*tensor.Block, error) {
		b, err := tensor.ParseBlock(text)
		return &b, err
	}
	f.Var(&parsed[*tensor.Block]{&o.Block, "", "RxC|row|tensor", parseBlock}, name+"-block",
		"rows and columns that share a scale (default: what fits the shapes)")
	parseFormat := func(text string) (*fp8.Format, error) {
		format, err := fp8.ParseFormat(text)
		return &format, err
	}
	f.Var(oneOf{&parsed[*fp8.Format]{&o.Format, "", "FORMAT", parseFormat}, formatNames()}, name+"-format",
		"of codes that are bytes: e4m3, e2m1 and so on")
	f.BoolVar(&o.Packed, name+"-packed", false, "those bytes hold several codes of less than 8 bits, the first in the lowest\nbits")
	f.StringVar(&o.Outer, name+"-outer", "", "`NAME` of its outer scales (default: that of the codes and _outer_scale or\n_outer_divisor)")
	f.BoolVar(&o.OuterDivides, name+"-outer-divides", false, "they are divisors")
	parseScaleFormat := func(text string) (*tensor.ScaleFormat, error) {
		format, err := tensor.ParseScaleFormat(text)
		return &format, err
	}
	f.Var(oneOf{&parsed[*tensor.ScaleFormat]{&o.ScaleFormat, "", "e8m0|ue4m3", parseScaleFormat}, []string{"e8m0", "ue4m3"}}, name+"-scale-format",
		"of scales that are bytes (default what metadata say, or of a file of their\nown e8m0)")
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

// twoFilesAtMost is the Args of a command that takes the files of a product.
func twoFilesAtMost(_ *cobra.Command, args []string) error {
	if len(args) > 2 {
		return fmt.Errorf("want two files at most, of A and of B, there are %d arguments", len(args))
	}
	return nil
}
