package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/cmd/internal/display"
	show "github.com/octavo-fp8/octavo/cmd/internal/evaluate"
	"github.com/octavo-fp8/octavo/cmd/internal/tokens"
	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/hf"
)

// evaluateFlags are the flags of evaluate.
type evaluateFlags struct {
	text, tokens      string
	html, command     string
	maxTokens, layers int
	context, stride   int
	workers, top      int
	recipes           []evaluate.Recipe
	modes             []evaluate.Mode
	budget            float64
	recipeOut         string
	recipeFile        string
	found             *evaluate.RecipeFile // for recipeOut
	asJSON            bool

	out, stage        string // the directory of the run and where its files lie until it is complete
	resume, overwrite bool
}

func newEvaluateCommand() *cobra.Command {
	f := evaluateFlags{maxTokens: 8192, layers: 2048, top: 5}
	cmd := &cobra.Command{
		Use:     "evaluate DIR|FILE.safetensors",
		Short:   "Say what recipes cost a model on a text",
		Long:    helpOf("evaluate"),
		Example: examplesOf("evaluate"),
		Args:    one("model"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (f.text == "") == (f.tokens == "") {
				return usagef("want a text to evaluate the model on: give --text or --tokens, one of them")
			}
			for _, out := range []string{f.html, f.recipeOut} {
				if err := sameFiles(append(show.Files(args[0]), f.text, f.tokens, f.recipeFile), out); err != nil {
					return err
				}
			}
			if err := f.checkBudget(); err != nil {
				return err
			}
			for _, why := range f.unwritten() {
				note(cmd, "note: %v", why)
			}
			f.command = commandLine(cmd, args)
			return runEvaluate(cmd, args[0], &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.text, "text", "", "`FILE` with the text")
	flags.StringVar(&f.tokens, "tokens", "", "`FILE` with IDs of tokens instead")
	nameOf := func(r evaluate.Recipe) string { return r.Name }
	recipes := listOf[evaluate.Recipe]{&f.recipes, "NAME", vocabulary.Evaluating.Recipe, nameOf}
	flags.Var(oneOf{recipes, vocabulary.Evaluating.Names()}, flagOfRecipes,
		"recipe to try, see octavo help recipes; may be repeated, or list several with commas")
	modes := listOf[evaluate.Mode]{
		&f.modes, "weights|activations|both", evaluate.ParseMode, evaluate.Mode.String,
	}
	flags.Var(oneOf{modes, namesOf(evaluate.Modes())}, "mode",
		"what is quantized; may be repeated, or list several with commas (default all)")
	cmd.Flags().Var(&parsed[float64]{&f.budget, "", "BITS", parseBits}, "budget",
		"choose among the recipes for each linear layer, for so many bits a weight, such as 4.5bits")
	flags.StringVar(&f.recipeOut, "recipe-out", "", "`FILE` for the recipes that --budget finds, for convert")
	flags.StringVar(&f.recipeFile, "recipe-file", "", "`FILE` of --recipe-out with recipes to try, too")
	wholeFlag(cmd, &f.context, 0, 1<<20, "context",
		"tokens in a window; 0 is the model's, at most 512 (default 0)")
	wholeFlag(cmd, &f.stride, 0, 1<<20, "stride",
		"tokens from one window to the next; 0 is a window (default 0)")
	wholeFlag(cmd, &f.maxTokens, 0, 1<<30, "max-tokens", "tokens of the text, the first ones; 0 is all")
	wholeFlag(cmd, &f.layers, 0, 1<<30, "layer-tokens", "tokens for the runs layer by layer; 0 is none")
	workersFlag(cmd, &f.workers)
	wholeFlag(cmd, &f.top, 0, 1<<30, "top", "show the `N` worst layers; 0 is all")
	jsonFlag(cmd, &f.asJSON)
	htmlFlag(cmd, &f.html, "charts")
	outDirFlag(cmd, &f.out, "the page, the JSON and, on the way, what --resume goes on from", "default: none")
	flags.BoolVar(&f.resume, "resume", false, "go on with an evaluation in --out that was cut off")
	overwriteFlag(cmd, &f.overwrite)
	return cmd
}

func runEvaluate(cmd *cobra.Command, path string, f *evaluateFlags) error {
	run, err := f.directory()
	if err != nil {
		return err
	}
	report, err := work(cmd, "nothing was printed", func(ctx context.Context, d *display.Display) (*show.Report, error) {
		return evaluated(ctx, path, f, d)
	})
	if err = f.end(run, report, err); err != nil {
		return err
	}
	if err := f.writeRecipes(); err != nil {
		return err
	}
	if err := writePage(f.html, "--html", func(w io.Writer, machine string) error {
		return report.WritePage(w, f.command, machine)
	}); err != nil {
		return err
	}
	return printResult(cmd, f.asJSON, report, func(w io.Writer) error { return report.WriteText(w, f.top) })
}

// evaluated reads the model and the text and evaluates.
func evaluated(ctx context.Context, path string, f *evaluateFlags, bar *display.Display) (*show.Report, error) {
	c, err := checkpoint.Open(path)
	if err != nil {
		return nil, mendSource(err)
	}
	defer c.Close()
	read, err := f.read(path)
	if err != nil {
		return nil, err
	}
	available := read.Cut(f.maxTokens)
	o := evaluate.Options{
		Recipes: f.recipes, Modes: f.modes, Prefix: read.Prefix,
		Context: f.context, Stride: f.stride, LayerTokens: f.layers, Together: checkpoint.FusedName,
	}
	if f.stage != "" {
		if o.State, err = stateOf(c, f.stage); err != nil {
			return nil, err
		}
	}
	if f.layers == 0 {
		o.LayerTokens = -1
	}
	from, err := hf.Open(ctx, c, hf.Options{Context: f.context, Workers: f.workers, Streamed: true})
	if err != nil {
		return nil, err
	}
	o.Progress, o.Read = bar, from.Read
	if f.recipeFile != "" {
		mixed, err := mixedFrom(f.recipeFile, from)
		if err != nil {
			return nil, err
		}
		o.Recipes = append(o.Recipes, mixed)
	}
	var report *evaluate.Evaluation
	var budget *show.Budget
	if f.budget > 0 {
		b := &budgeted{f, from, o, bar}
		if f.recipeOut != "" {
			if err := b.checkConvert(c); err != nil {
				return nil, err
			}
		}
		budget, report, err = b.run(ctx, read)
	} else {
		bar.Unit("layers", "evaluate")
		report, err = evaluate.Run(ctx, from.Model, read.IDs, o)
	}
	if err != nil {
		if errors.Is(err, evaluate.ErrTokens) {
			return nil, fmt.Errorf("%s: %w", read.From, err)
		}
		return nil, err
	}
	return &show.Report{
		Model: textout.Name(path), Stored: show.Stored(c), InputScales: show.InputScales(c),
		Text: read.From, Available: available, Evaluation: report, Budget: budget,
		Warnings: show.Warnings(report),
	}, nil
}

// read returns the tokens.
func (f *evaluateFlags) read(path string) (tokens.Tokens, error) {
	if f.tokens != "" {
		return tokens.FromIDs(f.tokens)
	}
	return tokens.FromText(show.Dir(path), f.text)
}
