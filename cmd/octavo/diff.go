package main

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/diff"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
)

const diffLong = `Diff compares two checkpoints by value, in whatever layouts they are: files,
directories or indexes, in BF16, F16 or F32 or in codes with scales as DeepSeek,
vLLM, transformers, compressed-tensors, ModelOpt, gpt-oss and torchao store
them. Tensors are matched by the names that they have in the model without
quantization, and experts that gpt-oss stores transposed are transposed back.

What is stored alike is compared by bytes first. Of the rest, values are
compared: decode(code) * scale, times or divided by the outer scale, rounded to
float32. A is taken for what is right:

  differ   share of elements whose values are not the same; zeros of either
           sign are, and so are two NaN
  largest  the largest difference of finite values
  SQNR     A's energy over that of the differences, in decibels

What differs most comes first: what is in one alone or cannot be compared, what
is NaN or infinite in one alone, then the lowest SQNR. Where one side is in BF16
or F16, values may be the same once they are rounded to that: FP8 under float32
scales has values that BF16 has not.

The exit status is 0 if all values are the same, 1 if not or if what was read is
wrong, 2 if the command line is. --rounded, --sqnr and --largest allow more, for
each tensor by itself; of the last two both count if both are given. They never
allow other shapes, a NaN or infinity in one alone, or another scale of the
input.

With --lossless it is proved of the codes in A, where B has them in other codes
or types, that B's blocks could hold all values under scales that are powers of
two, or the first block that cannot is named: MXFP4 in E4M3 blocks loses nothing
if the scales in a block differ by 2^14 at most, and may beyond.

Weights of methods of quantization that are not read, such as GPTQ, AWQ and
bitsandbytes, are the same if their bytes and quantization_config are, and
otherwise not judged, which the exit status takes for a difference.

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
		Args:    twoCheckpoints,
		RunE: func(cmd *cobra.Command, args []string) error {
			job.A, job.B = args[0], args[1]
			ctx, stop := untilSignal(cmd)
			defer stop()
			bar := newDisplay(cmd)
			bar.Unit(display.Bytes)
			job.Options.Progress = bar
			r, err := job.Run(ctx)
			bar.Finish()
			switch {
			case ctx.Err() != nil && err != nil:
				return stopped(ctx, "there is no result")
			case err != nil:
				return err
			case asJSON:
				err = jsonout.Print(cmd.OutOrStdout(), r)
			default:
				err = r.WriteText(cmd.OutOrStdout(), top)
			}
			if err != nil || r.Same {
				return err
			}
			return errors.New(r.Failure())
		},
	}
	onlyFlag(cmd, &job.Only, "compare only the tensors whose name matches")
	cmd.Flags().Var(&parsed[*regexp.Regexp]{&job.Except, "", "REGEXP", regexp.Compile}, "except", "leave out the tensors whose name matches")
	cmd.Flags().BoolVar(&job.Tolerance.Rounded, "rounded", false, "allow what is the same once rounded to the narrower type")
	positiveFlag(cmd, &job.Tolerance.SQNR, "sqnr", "allow differences with this SQNR in decibels or a higher one")
	positiveFlag(cmd, &job.Tolerance.Largest, "largest", "allow differences of finite values up to this")
	cmd.Flags().BoolVar(&job.Lossless, "lossless", false, "prove that B could hold A's codes without loss, or name the block that breaks it")
	wholeFlag(cmd, &top, 0, 1<<30, "top", "show the `N` tensors that differ most; 0 is all")
	workersFlag(cmd, &job.Options.Workers)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// positiveFlag adds a flag that takes a positive number.
func positiveFlag(cmd *cobra.Command, value *float64, name, usage string) {
	parse := func(text string) (float64, error) {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x > 0) || math.IsInf(x, 1) {
			return 0, errors.New("want a positive number")
		}
		return x, nil
	}
	cmd.Flags().Var(&parsed[float64]{value, "", "X", parse}, name, usage)
}

// twoCheckpoints is the Args of diff.
func twoCheckpoints(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("want two checkpoints, there are %d arguments", len(args))
	}
	return nil
}
