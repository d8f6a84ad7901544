package main

import (
	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/cmd/internal/vocabulary"
	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/generate"
)

// generateFlags are the flags of generate.
type generateFlags struct {
	model                   string
	prompts                 []string
	promptFile, promptsFile string
	tokens, context, batch  int
	sampling                generate.Sampling
	recipe, head            *evaluate.Recipe // nil: none
	cache                   generate.CacheFormat
	invariant               bool
	ids, asJSON             bool
	workers                 int
}

func newGenerateCommand() *cobra.Command {
	f := generateFlags{tokens: 256, batch: 16}
	fp8, err := parseGenerateRecipe("fp8")
	if err != nil {
		panic(err) // it is one of the recipes
	}
	f.recipe = fp8
	cmd := &cobra.Command{
		Use:     "generate DIR|FILE.safetensors",
		Short:   "Continue prompts with a model in FP8",
		Long:    helpOf("generate"),
		Example: examplesOf("generate"),
		Args:    oneOr(&f.model, "model"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.model = append(args, f.model)[0]
			return runGenerate(cmd, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.model, "model", "", "the same as `DIR`")
	flags.StringArrayVar(&f.prompts, "prompt", nil, "`TEXT` to continue; may be given again")
	flags.StringVar(&f.promptFile, "prompt-file", "", "`FILE` with the text to continue")
	flags.StringVar(&f.promptsFile, "prompts", "", "`FILE` with a prompt on each line")
	wholeFlag(cmd, &f.batch, 0, 1<<20, "batch", "requests that are run at once; 0 is all")
	wholeFlag(cmd, &f.tokens, 0, 1<<30, "tokens",
		"tokens at most for each prompt; 0 is until the context is full")
	wholeFlag(cmd, &f.context, 0, 1<<20, "context",
		"tokens of a prompt and what follows; 0 is the model's, at most 4096 (default 0)")
	numberFlag(cmd, &f.sampling.Temperature, numberRange{"a number that is not negative", limited.has}, "temperature",
		"of the choice at random; 0 takes the most likely token")
	wholeFlag(cmd, &f.sampling.TopK, 0, 1<<30, "top-k",
		"choose among the `N` most likely; 0 is all (default 0)")
	numberFlag(cmd, &f.sampling.TopP, numberRange{"a number from 0 to 1", shares.has}, "top-p",
		"choose among the fewest with this much of the probability; 0 is all")
	seedFlag(cmd, &f.sampling.Seed, "seed of the choices")
	recipeFlag(cmd, &f.recipe, f.recipe.Name, vocabulary.Generating,
		"recipe of weights and of what they are multiplied with, see octavo help recipes", parseGenerateRecipe)
	head := &parsed[*evaluate.Recipe]{&f.head, vocabulary.None, "NAME", parseHeadRecipe}
	flags.Var(oneOf{head, vocabulary.Head.Names()}, "head", "recipe of head and embedding, or bf16")
	choiceFlag(cmd, &f.cache, "cache", "how keys and values are kept", named(generate.CacheFormats())...)
	flags.BoolVar(&f.invariant, "batch-invariant", false,
		"refuse recipes under which tokens depend on what they are run with")
	flags.BoolVar(&f.ids, "ids", false, "take and print IDs of tokens instead of text")
	workersFlag(cmd, &f.workers)
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

// parseGenerateRecipe returns the recipe of a name; nil is none.
func parseGenerateRecipe(name string) (*evaluate.Recipe, error) {
	return recipeOrNone(name, vocabulary.Generating)
}

// parseHeadRecipe is parseGenerateRecipe, or bf16.
func parseHeadRecipe(name string) (*evaluate.Recipe, error) {
	return recipeOrNone(name, vocabulary.Head)
}

func recipeOrNone(name string, use vocabulary.Use) (*evaluate.Recipe, error) {
	if name == vocabulary.None {
		return nil, nil
	}
	r, err := use.Recipe(name)
	return &r, err
}
