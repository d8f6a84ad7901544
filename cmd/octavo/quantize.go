package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint/quantize"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	show "github.com/octavo-fp8/octavo/cmd/internal/quantize"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/tensor"
)

func newQuantizeCommand() *cobra.Command {
	var o quantize.Options
	var out string
	var block tensor.Block
	var recipe vocabulary.Weights
	var asJSON, detail, overwrite bool
	top := 10
	cmd := &cobra.Command{
		Use:     "quantize IN.safetensors|DIR -o OUT --recipe NAME",
		Short:   "Quantize the matrices of a checkpoint to FP8, FP6 or FP4",
		Long:    helpOf("quantize"),
		Example: examplesOf("quantize"),
		Args:    one("file or directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := sameFiles(args, out); err != nil {
				return err
			}
			if cmd.Flags().Changed("format") {
				var err error
				if recipe, err = recipe.InFormat(o.Recipe.Format); err != nil {
					return usageError{err}
				}
			}
			o.Recipe = recipe.Recipe
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
	recipeFlag(cmd, &recipe, "", vocabulary.Quantizing, "recipe of the weights, see octavo help recipes (required)", vocabulary.Quantizing.Weights)
	markRequired(cmd, flagOfRecipes)
	formatFlag(cmd, &o.Recipe.Format, "", "format of the codes (default the recipe's: e4m3, or e2m1)")
	blockFlag(cmd, &block, "block", "rows and columns that share a scale (default the recipe's for weights)")
	onlyFlag(cmd, &o.Only, "quantize only the matrices whose name matches, copy the others")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave what models keep as it is: embeddings, heads, routers")
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
