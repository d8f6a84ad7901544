package main

import (
	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint/quantize"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	show "github.com/octavo-fp8/octavo/cmd/internal/quantize"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

const quantizeLong = `Quantize replaces the float matrices of a safetensors file by codes of eight
bits or fewer and scales. A matrix is a tensor of two or more dimensions, F64,
F32, F16 or BF16; its columns are the last dimension and its rows all others
together. For NAME the output has

  NAME            codes, of the same shape: F8_E4M3, F8_E5M2, F8_E4M3FNUZ,
                  F8_E5M2FNUZ, F4 for e2m1, F6_E2M3 or F6_E3M2, side by side; U8
                  for the formats that have no type
  NAME_scale_inv  the grid of scales, [rows, columns] of blocks: F32, F8_E8M0
                  for the mx profiles, or F8_E4M3 (UE4M3) for the nvfp4 ones

and for most nvfp4 profiles, in F32, one for the matrix or one for each row,

  NAME_outer_scale    which values are multiplied by, or
  NAME_outer_divisor  which they are divided by (compressed-tensors)

Value = decode(code) * scale, times or divided by the outer scale. All other
tensors are copied byte for byte, as is the metadata, to which octavo.profile,
octavo.format, octavo.block and, where there are any, octavo.outer are added.
Codes of formats that safetensors has no type for are U8; octavo.format.NAME
says what they are. Large tensors are read in strips of whole rows of blocks,
and twice if they have but one scale, or one outer scale.

A profile is the arithmetic of a library's scales, and brings the block that the
library gives to weights. Profiles:

`

const quantizeNotes = `

te-delayed is not among them: it needs the amax of earlier steps.

A matrix of codes is an error, unless --only leaves it out, which copies it, or
with --requantize: it is then decoded with its scales in
NAME_scale_inv, each value the exact product of code and scale, and encoded anew
as a matrix of F64 is, rounded once. New scales take the place of the old ones.
Of what the first quantization lost nothing comes back. Where there is nothing
to quantize that is an error too, and no file is written.

A NaN or infinity is quantized as the profile does it, and named in a warning on
standard error. The summary counts bytes of tensor data, finite values too large
for their scale (saturated), values that were not zero and became zero
(flushed), and, if there are any, finite values that became NaN or infinite
because their scale is; and it says of the tensors that lost most, those with
the lowest signal-to-quantization-noise ratio (SQNR), how much. --detail lists
all tensors, and so does --json. Its last line gives the bytes read, each
counted once, the time from opening the input to having the output on disk, and
the rate in 10^9 bytes a second.`

const quantizeExample = `  octavo quantize model.safetensors -o model-fp8.safetensors --profile deepseek
  octavo quantize model.safetensors -o out.safetensors --profile te-block \
    --block 1x128 --format e5m2
  octavo quantize model.safetensors -o out.safetensors --profile mx-rceil \
    --format e2m1 --only 'mlp\..*_proj'
  octavo quantize model.safetensors -o out.safetensors --profile nvfp4-te`

func newQuantizeCommand() *cobra.Command {
	var o quantize.Options
	var out string
	var block tensor.Block
	var asJSON, detail bool
	top := 10
	cmd := &cobra.Command{
		Use:     "quantize IN.safetensors -o OUT.safetensors --profile NAME",
		Short:   "Quantize the matrices of a checkpoint to FP8, FP6 or FP4",
		Long:    quantizeLong + textout.Wrap(profileNames(), 78, "  ") + quantizeNotes,
		Example: quantizeExample,
		Args:    one("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sameFile(args[0], out); err != nil {
				return err
			}
			usual := o.Recipe.Profile.Recipe(scaling.Weight)
			if o.Recipe.Block = usual.Block; !cmd.Flags().Changed("format") {
				o.Recipe.Format = usual.Format
			}
			if !o.Recipe.Profile.For(o.Recipe.Format) {
				return usagef("--profile %s is not for %v: it encodes to %v", o.Recipe.Profile, o.Recipe.Format, usual.Format)
			}
			if cmd.Flags().Changed("block") {
				o.Recipe.Block = block
			}
			ctx, stop := untilSignal(cmd)
			defer stop()
			bar := newDisplay(cmd)
			bar.Unit(display.Bytes)
			o.Progress = bar
			summary, err := quantize.File(ctx, args[0], out, o)
			bar.Finish()
			if err != nil {
				return unwritten(ctx, out, err)
			}
			for _, n := range summary.NonFinite {
				warn(cmd.ErrOrStderr(), "%v", n)
			}
			switch {
			case asJSON:
				return jsonout.Print(cmd.OutOrStdout(), summary)
			case quiet(cmd):
				return nil
			}
			return show.WriteText(cmd.OutOrStdout(), summary, shownTensors(top, detail))
		},
	}
	outFlag(cmd, &out)
	profileFlag(cmd, &o.Recipe.Profile, "arithmetic of the scales, one of the above (required)")
	markRequired(cmd, "profile")
	formatFlag(cmd, &o.Recipe.Format, "", "format of the codes (default the profile's: e4m3, or e2m1)")
	blockFlag(cmd, &block, "block", "rows and columns that share a scale (default the profile's for weights)")
	onlyFlag(cmd, &o.Only, "quantize only the matrices whose name matches, copy the others")
	cmd.Flags().BoolVar(&o.Requantize, "requantize", false, "decode matrices of codes, and encode them anew")
	wholeFlag(cmd, &top, 0, 1<<30, "top", "show the `N` tensors that lost most; 0 is all")
	cmd.Flags().BoolVar(&detail, "detail", false, "show all tensors")
	jsonFlag(cmd, &asJSON)
	return cmd
}

// shownTensors is how many tensors a summary shows; 0 is all.
func shownTensors(top int, detail bool) int {
	if detail {
		return 0
	}
	return top
}
