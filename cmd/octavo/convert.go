package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// convertFlags are the flags of convert.
type convertFlags struct {
	out, amax         string
	calibrate, tokens string
	calibrateTokens   int
	recipeFile        string
	smooth            float64
	layout            *checkpoint.Layout
	recipe            string
	only, except      *regexp.Regexp
	jobs, top         int
	resume, overwrite bool
	lossless          bool
	json, detail      bool
}

func newConvertCommand() *cobra.Command {
	f := convertFlags{top: 10, calibrateTokens: 16384}
	cmd := &cobra.Command{
		Use:     "convert DIR -o DIR --to LAYOUT",
		Short:   "Convert a model to the layout that a loader wants, or back",
		Long:    helpOf("convert", "{layouts}", layoutList()),
		Example: examplesOf("convert"),
		Args:    one("model"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runConvert(cmd, args, &f) },
	}
	outDirFlag(cmd, &f.out, "the model", "required")
	to := &parsed[*checkpoint.Layout]{&f.layout, "", "LAYOUT", parseWritable}
	cmd.Flags().Var(oneOf{to, writableLayouts()}, "to", "layout to convert to, one of the above (required)")
	markRequired(cmd, "out", "to")
	recipeFlag(cmd, &f.recipe, "", vocabulary.Arithmetic, "arithmetic of the scales in place of the layout's, see octavo help recipes",
		func(name string) (string, error) { return name, vocabulary.Arithmetic.Check(name) })
	onlyFlag(cmd, &f.only, "quantize only the weights whose name matches")
	cmd.Flags().Var(&parsed[*regexp.Regexp]{&f.except, "", "REGEXP", regexp.Compile}, "except", "quantize no weight whose name matches")
	cmd.Flags().StringVar(&f.recipeFile, "recipe-file", "", "`FILE` with the recipe of each module, such as of evaluate's --recipe-out")
	cmd.Flags().StringVar(&f.amax, "amax", "", "`FILE` with the largest magnitudes of layers' inputs, in JSON")
	cmd.Flags().StringVar(&f.calibrate, "calibrate", "", "`FILE` with a text whose largest inputs of layers are looked for")
	cmd.Flags().StringVar(&f.tokens, "tokens", "", "`FILE` with IDs of tokens to calibrate with instead")
	wholeFlag(cmd, &f.calibrateTokens, 0, 1<<30, "calibrate-tokens", "calibrate with the first `N` tokens; 0 is all")
	cmd.Flags().Float64Var(&f.smooth, "smooth", 0, "fold this much of outliers of channels into weights, such as 0.5, by the text of --calibrate")
	wholeFlag(cmd, &f.jobs, 0, mostWorkers, "jobs", "strips converted at once; 0 is one for each processor (default 0)")
	cmd.Flags().BoolVar(&f.resume, "resume", false, "go on with a conversion that was cut off")
	overwriteFlag(cmd, &f.overwrite)
	cmd.Flags().BoolVar(&f.lossless, "lossless", false, "write nothing if any weight would lose anything")
	wholeFlag(cmd, &f.top, 0, 1<<30, "top", "show the `N` weights that lost most; 0 is all")
	cmd.Flags().BoolVar(&f.detail, "detail", false, "show all weights that lost anything")
	jsonFlag(cmd, &f.json)
	return cmd
}

// layoutList lists the layouts that can be written, a line for each.
func layoutList() string {
	var text strings.Builder
	for _, l := range checkpoint.Layouts() {
		if l.Writable() {
			about := textout.Wrap(l.About, 78-20, "")
			fmt.Fprintf(&text, "  %-18s%s\n", l.Name, strings.ReplaceAll(about, "\n", "\n"+strings.Repeat(" ", 20)))
		}
	}
	return text.String()
}

func writableLayouts() (list []string) {
	for _, l := range checkpoint.Layouts() {
		if l.Writable() {
			list = append(list, l.Name)
		}
	}
	return list
}

func parseWritable(name string) (*checkpoint.Layout, error) {
	l, err := checkpoint.ParseLayout(name)
	switch {
	case err != nil:
		return nil, vocabulary.Unknown("layout", name, writableLayouts())
	case !l.Writable():
		return nil, errors.New("it can be read, not written")
	}
	return l, nil
}
