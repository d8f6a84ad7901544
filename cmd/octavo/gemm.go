package main

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/multiply"
	"github.com/octavo-fp8/octavo/cmd/internal/operand"
	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

const gemmLong = `Gemm multiplies two block-scaled FP8 matrices of a safetensors file, C = A·Bᵀ
with A [M, K] and B [N, K], and writes C [M, N] to another as tensor c.

Operands are codes of type F8_E4M3, F8_E5M2, F8_E4M3FNUZ or F8_E5M2FNUZ. A
tensor of any rank is a matrix whose columns are its last dimension. The scales
of an operand are F32 or F8_E8M0, a grid [rows, columns] of one dequantization
scale for each block, value = decode(code) * scale. Blocks are given as RxC such
as 128x128, where R or C may be "all"; "row" is 1xall and "tensor" is allxall.

The sum is accumulated in float32 in one documented order, so its bits depend
neither on the machine nor on --workers, and are rounded once to the output
type. Along K the larger extent of the blocks must be a multiple of the smaller
or span all of K, and neither may be 1. A scale that is NaN, infinite or negative
is refused, and so are more than 2^24 results where K is 0. A result that is NaN
or infinite is named in a warning on standard error.`

const gemmExample = `  octavo gemm layer.safetensors -o c.safetensors \
    --a x --a-scales x_scale_inv --a-block 1x128 \
    --b w --b-scales w_scale_inv --b-block 128x128 --out-type bf16`

func newGemmCommand() *cobra.Command {
	var a, b operandFlags
	var out string
	var outType safetensors.DType
	var workers uint64
	cmd := &cobra.Command{
		Use:     "gemm IN.safetensors -o OUT.safetensors --a NAME ... --b NAME ...",
		Short:   "Multiply two block-scaled FP8 matrices",
		Long:    gemmLong,
		Example: gemmExample,
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sameFile(args[0], out); err != nil {
				return err
			}
			x, y, err := readOperands(args[0], a.Operand, b.Operand)
			if err != nil {
				return err
			}
			bar := newDisplay(cmd)
			p := multiply.Product{A: x, B: y, Workers: int(min(workers, math.MaxInt32)), Progress: bar}
			ctx, stop := untilSignal(cmd)
			defer stop()
			err = p.WriteFile(ctx, out, outType)
			bar.Finish()
			if err != nil {
				return unwritten(ctx, out, err)
			}
			if n := p.NonFinite; n != nil {
				warn(cmd.ErrOrStderr(), "tensor %q: element %d of shape %v is %v", n.Tensor, n.Index, p.Shape(), n.Value)
			}
			return nil
		},
	}
	a.add(cmd, "a", "[M, K]")
	b.add(cmd, "b", "[N, K]")
	outFlag(cmd, &out)
	choiceFlag(cmd, &outType, "out-type", "type of the result",
		choice[safetensors.DType]{"f32", safetensors.F32},
		choice[safetensors.DType]{"bf16", safetensors.BF16},
		choice[safetensors.DType]{"f16", safetensors.F16})
	wholeFlag(cmd, &workers, 0, math.MaxUint64, "workers", "threads at most; 0 is one for each processor (default 0)")
	return cmd
}

func readOperands(path string, a, b operand.Operand) (x, y *tensor.Tensor, err error) {
	file, err := tensorfile.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	return operand.ReadPair(&operand.Source{File: file}, a, b)
}
