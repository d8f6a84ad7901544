package main

import (
	"context"
	"errors"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/diff"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
)

const diffLong = `Diff compares two checkpoints by value, in whatever layouts they are: files,
directories or indexes, in BF16, F16 or F32 or in codes with scales as DeepSeek,
vLLM, transformers, compressed-tensors, ModelOpt, gpt-oss and torchao store
them. Tensors are matched by the names that they have in the model without
quantization, and experts that gpt-oss stores transposed are transposed back.

Tensors of the same type are compared by bytes first. Of others the values are
compared: decode(code) * scale, times or divided by the outer scale, rounded to
float32. A is the reference:

  differ   share of elements with different values; zeros of either sign are
           the same, and so are two NaN
  largest  the largest difference of finite values
  SQNR     A's energy over that of the differences, in decibels

The worst come first: tensors that only one model has or that cannot be
compared, then those that are NaN or infinite in only one, then those with the
lowest SQNR. If one side is BF16 or F16, values may be the same once rounded to
that type: FP8 under float32 scales has values that BF16 does not have.

The exit status is 0 if all values are the same, 1 if not or if the input is
wrong, 2 if the command line is wrong. --rounded, --sqnr and --largest allow
more, for each tensor by itself; if the last two are given, both must hold. They
never allow other shapes, a NaN or infinity in only one, or another scale of the
input.

--lossless proves, for the codes of A that B stores differently, that B's blocks
can hold all values under scales that are powers of two, or names the first
block that cannot. MXFP4 in E4M3 blocks loses nothing if the scales in a block
differ by 2^14 at most, and may lose beyond.

Weights of quantization methods that octavo does not read, such as GPTQ, AWQ and
bitsandbytes, are the same if their bytes and quantization_config are. Otherwise
they are not judged, and the exit status counts them as different.

JSON has the keys a and b (path, layout, tensors, notJudged), same, counts,
outside (how many are not allowed), tensors (name, same, within, why, a and b:
scheme, dtype, shape, file; elements, differ, first, roundedTo, differRounded,
nonFinite, firstNonFinite, zeroSigns, largestError, at, sqnrDecibels,
inputScales) and proofs (name, to, holds, blocks, spread, reach, limit, why,
block: matrix, row, column). Places are indexes in A's tensor. Infinities are
the strings "+Inf" and "-Inf".`

const diffExample = `  octavo diff model-fp8/ model-bf16/ --rounded
  octavo diff model/ model-fp8/ --sqnr 28 --except 'norm|embed'
  octavo diff model-mxfp4/ model-fp8/ --lossless --json |
    jq '.proofs[] | select(.holds | not)'`

func newDiffCommand() *cobra.Command {
	var job diff.Job
	var asJSON bool
	top := 20
	cmd := &cobra.Command{
		Use:     "diff A.safetensors|DIR B.safetensors|DIR",
		Short:   "Compare two checkpoints in whatever layouts, by value",
		Long:    diffLong,
		Example: diffExample,
		Args:    takes(2, 2, "two checkpoints"),
		RunE: func(cmd *cobra.Command, args []string) error {
			job.A, job.B = args[0], args[1]
			r, err := work(cmd, "there is no result", func(ctx context.Context, d *display.Display) (*diff.Report, error) {
				d.Unit(display.Bytes)
				job.Options.Progress = d
				return job.Run(ctx)
			})
			if err != nil {
				return err
			}
			err = printResult(cmd, asJSON, r, func(w io.Writer) error { return r.WriteText(w, top) })
			if err != nil || r.Same {
				return err
			}
			return errors.New(r.Failure())
		},
	}
	onlyFlag(cmd, &job.Only, "compare only the tensors whose name matches")
	cmd.Flags().Var(&parsed[*regexp.Regexp]{&job.Except, "", "REGEXP", regexp.Compile}, "except", "leave out the tensors whose name matches")
	cmd.Flags().BoolVar(&job.Tolerance.Rounded, "rounded", false, "allow what is the same once rounded to the narrower type")
	numberFlag(cmd, &job.Tolerance.SQNR, positives, "sqnr", "allow differences with this SQNR in decibels or a higher one")
	numberFlag(cmd, &job.Tolerance.Largest, positives, "largest", "allow differences of finite values up to this")
	cmd.Flags().BoolVar(&job.Lossless, "lossless", false, "prove that B could hold A's codes without loss, or name the block that breaks it")
	wholeFlag(cmd, &top, 0, 1<<30, "top", "show the `N` tensors that differ most; 0 is all")
	workersFlag(cmd, &job.Options.Workers)
	jsonFlag(cmd, &asJSON)
	return cmd
}
