package main

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/multiply"
	"github.com/octavo-fp8/octavo/oracle/operands"
	"github.com/octavo-fp8/octavo/safetensors"
)

const gemmLong = `Gemm multiplies two block-scaled matrices, C = A·Bᵀ with A [M, K] and
B [N, K], adds a bias and an old C if asked to, and writes C [M, N] to a
safetensors file as tensor c. It reports in two lines, or with --json as an
object.

` + operandsHelp + `

Sums are float32 in one documented order, so that their bits depend neither on
the machine nor on --workers. Then the bias is added, then the old C, and the
result is rounded once to the output type. Along K the larger block extent must
be a multiple of the smaller or span all of K, and neither may be 1. An F32
scale that is NaN, infinite or negative is an error; NaN in F8_E8M0 or F8_E4M3
makes its block NaN. If K is 0, more than 2^24 results are an error. A warning
names the first result that is NaN or infinite; the exit status is still 0.

JSON has the keys out (the file), bytes, type, m, n, k, a and b (name, format,
shape, block, scaleFormat, outer, scales, distinct, alike), bias, accumulate,
level, seconds and gflops (of the product alone), nan and infinite (counts of
results).`

const gemmExample = `  octavo gemm layer.safetensors --a x --b w -o c.safetensors
  octavo gemm activations.safetensors weights.safetensors -o c.safetensors \
    --a x --a-scales x_scales --a-block 1x128 --b w --b-block 128x128 \
    --bias b --out-type bf16
  octavo gemm --a a.npy --a-format e4m3 --a-scales sa.npy \
    --b b.npy --b-format e4m3 --b-scales sb.npy -o c.safetensors`

// gemmFlags are the flags of gemm.
type gemmFlags struct {
	productFlags
	out     string
	outType safetensors.DType
	workers uint64
	asJSON  bool
}

func newGemmCommand() *cobra.Command {
	var g gemmFlags
	cmd := &cobra.Command{
		Use:     "gemm [IN [IN-OF-B]] --a NAME --b NAME -o OUT",
		Short:   "Multiply two block-scaled matrices of codes",
		Long:    gemmLong,
		Example: gemmExample,
		Args:    productFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			g.Files = args
			return g.run(cmd)
		},
	}
	g.add(cmd)
	outFlag(cmd, &g.out)
	choiceFlag(cmd, &g.outType, "out-type", "type of the result; with --accumulate that of the old C",
		choice[safetensors.DType]{"f32", safetensors.F32},
		choice[safetensors.DType]{"bf16", safetensors.BF16},
		choice[safetensors.DType]{"f16", safetensors.F16})
	workersFlag(cmd, &g.workers)
	jsonFlag(cmd, &g.asJSON)
	return cmd
}

func (g *gemmFlags) run(cmd *cobra.Command) error {
	if _, alone := operands.Path(g.out); alone {
		return usagef("-o %s: octavo gemm writes safetensors files", g.out)
	}
	if err := sameFiles(g.read(), g.out); err != nil {
		return err
	}
	in := multiply.Inputs{Operands: g.Product, Workers: int(min(g.workers, math.MaxInt32))}
	if cmd.Flags().Changed("out-type") {
		in.Type = g.outType
	}
	r, err := work(cmd, "no file was written", func(ctx context.Context, d *display.Display) (*multiply.Result, error) {
		in.Progress = d
		return in.WriteFile(ctx, g.out)
	})
	if err != nil {
		return unwritten(g.out, err)
	}
	if first := r.NonFinite; first != nil {
		warn(cmd.ErrOrStderr(), "tensor %q: element %d of shape %v is %v", first.Tensor, first.Index, []int{r.M, r.N}, first.Value)
	}
	if quiet(cmd) && !g.asJSON {
		return nil
	}
	return printResult(cmd, g.asJSON, r, r.WriteText)
}
