package main

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/multiply"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/safetensors"
)

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
		Long:    helpOf("gemm"),
		Example: examplesOf("gemm"),
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
