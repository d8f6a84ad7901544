package main

import (
	"context"

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
F32, F16 or BF16. Its columns are the last dimension; all others are its rows.
For a matrix NAME the output has

  NAME            codes, of the same shape: F8_E4M3, F8_E5M2, F8_E4M3FNUZ or
                  F8_E5M2FNUZ; F4 (e2m1), F6_E2M3 or F6_E3M2, packed; or U8 for
                  formats without a type: metadata octavo.format.NAME names it
  NAME_scale_inv  the scales of its blocks, [rows, columns]: F32, F8_E8M0 for mx
                  profiles, F8_E4M3 (UE4M3) for nvfp4 profiles

and for most nvfp4 profiles, in F32, one for the matrix or one for each row,

  NAME_outer_scale    which values are multiplied by, or
  NAME_outer_divisor  which they are divided by (compressed-tensors)

Value = decode(code) * scale, times or divided by the outer scale. All other
tensors are copied byte for byte. Metadata are copied too; octavo.profile,
octavo.format, octavo.block and, with outer scales, octavo.outer are added.

Of a directory every shard is quantized to a shard of the same name in the
directory --out. The index is rewritten; configuration and tokenizer are copied
as they are. octavo convert writes layouts, and a config.json, that loaders of
FP8 read.

A profile is the arithmetic by which a library chooses scales; it sets the block
that the library uses for weights. Profiles:

`

const quantizeNotes = `

te-delayed is not among them: it needs the amax of earlier steps.

A matrix of codes is an error, unless --only does not match it, which copies it,
or --requantize is given. Then each value, the exact product of code and scale,
is rounded once more, and new scales replace the old ones. What the first
quantization lost stays lost. It is an error if there is nothing to quantize;
then nothing is written.

NaN and infinities become what the profile makes of them; a warning on standard
error names the first. The summary counts bytes of tensor data, finite values
too large for their scale (saturated), nonzero values that became zero (flushed)
and finite values that became NaN or infinite because their scale is. It lists
the tensors with the lowest signal-to-quantization-noise ratio (SQNR); --detail
and --json list all. The last line has the bytes read, each counted once, the
time until the output was on disk, and the rate in 10^9 bytes a second.`

const quantizeExample = `  octavo quantize model.safetensors -o model-fp8.safetensors --profile deepseek
  octavo quantize model.safetensors -o out.safetensors --profile te-block \
    --block 1x128 --format e5m2
  octavo quantize model.safetensors -o out.safetensors --profile mx-rceil \
    --format e2m1 --only 'mlp\..*_proj'
  octavo quantize model.safetensors -o out.safetensors --profile nvfp4-te
  octavo quantize Qwen3-8B -o Qwen3-8B-MXFP8 --profile mx-rceil`

func newQuantizeCommand() *cobra.Command {
	var o quantize.Options
	var out string
	var block tensor.Block
	var asJSON, detail, overwrite bool
	top := 10
	cmd := &cobra.Command{
		Use:     "quantize IN.safetensors|DIR -o OUT --profile NAME",
		Short:   "Quantize the matrices of a checkpoint to FP8, FP6 or FP4",
		Long:    quantizeLong + textout.Wrap(profileNames(), 78, "  ") + quantizeNotes,
		Example: quantizeExample,
		Args:    one("file or directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sameFiles(args, out); err != nil {
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
			summary, err := work(cmd, "no file was written", func(ctx context.Context, d *display.Display) (*quantize.Summary, error) {
				d.Unit(display.Bytes)
				o.Progress = d
				if isDir(args[0]) {
					return quantizeDir(ctx, cmd, args[0], out, o, overwrite)
				}
				return quantize.File(ctx, args[0], out, o)
			})
			if err != nil {
				return unwritten(out, err)
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
	cmd.Flags().Lookup("out").Usage = "`FILE` to write, replaced if it exists; DIR for a directory (required)"
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "of a directory: replace the model in --out")
	profileFlag(cmd, &o.Recipe.Profile, "arithmetic of the scales; --help lists them (required)")
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
