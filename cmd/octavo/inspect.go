package main

import (
	"regexp"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/inspect"
	"github.com/octavo-fp8/octavo/cmd/internal/tensorfile"
	"github.com/octavo-fp8/octavo/fp8"
)

const inspectLong = `Inspect lists the tensors of a safetensors file and says what FP8 would do to
them. Of a tensor of floating-point values it prints

  amax      the largest finite magnitude
  smallest  the smallest nonzero magnitude
  range     log2 amax - log2 smallest, in bits

and of a float matrix (two or more dimensions: F64, F32, F16 or BF16), for every
recipe but te-delayed, which needs the amax of earlier steps, quantized in the
block that the recipe's library gives to weights,

  saturated  finite values too large for their scale
  flushed    values that are not zero and would become zero (underflow)
  SQNR       signal-to-quantization-noise ratio in decibels, over finite values
  scale      the smallest and largest dequantization scale

and below a recipe under whose scales finite values would become NaN or
infinite, how many.

The values of FP8 codes are those of the codes alone; where the tensor NAME has
scales in NAME_scale_inv, their shape and range are printed.

With --json everything is one object. NaN and infinities are the strings "NaN",
"+Inf" and "-Inf"; smallest is 0 where all values are 0, and rangeBits is then
"NaN", as is the SQNR.`

const inspectExample = `  octavo inspect model.safetensors
  octavo inspect model.safetensors --only 'layers\.0\.mlp' --format e5m2
  octavo inspect model.safetensors --json | jq '.tensors[] | {name, amax: .values.amax}'`

func newInspectCommand() *cobra.Command {
	var format fp8.Format
	var only *regexp.Regexp
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "inspect FILE.safetensors",
		Short:   "Say what is in a file and what FP8 would do to it",
		Long:    inspectLong,
		Example: inspectExample,
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := tensorfile.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			ctx, stop := untilSignal(cmd)
			defer stop()
			i := inspect.Inspector{File: file, Format: format, Only: only}
			if asJSON {
				bar := newDisplay(cmd)
				defer bar.Finish()
				i.Progress = bar
				return i.WriteJSON(ctx, cmd.OutOrStdout(), args[0])
			}
			return i.WriteText(ctx, cmd.OutOrStdout())
		},
	}
	formatFlag(cmd, &format, "e4m3", "format that the recipes encode to")
	onlyFlag(cmd, &only, "inspect only the tensors whose name matches")
	jsonFlag(cmd, &asJSON)
	return cmd
}
