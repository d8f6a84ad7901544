package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/generate"
)

// noRecipe is the recipe of those that multiply weights as they were loaded.
const noRecipe = "none"

// bf16Recipe is the recipe that rounds to bfloat16.
const bf16Recipe = "bf16"

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
		Use:     "generate --model DIR|FILE.safetensors",
		Short:   "Continue prompts with a model in FP8",
		Long:    helpOf("generate"),
		Example: examplesOf("generate"),
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runGenerate(cmd, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.model, "model", "", "`DIR` with the model, or its file (required)")
	markRequired(cmd, "model")
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
	recipe := &parsed[*evaluate.Recipe]{&f.recipe, f.recipe.Name, "NAME", parseGenerateRecipe}
	names := append(slices.DeleteFunc(evaluate.Names(), func(name string) bool {
		return name == bf16Recipe // which has no codes; parsing all recipes here takes a millisecond
	}), noRecipe)
	flags.Var(oneOf{recipe, names}, "recipe",
		"recipe of weights and of what they are multiplied with")
	head := &parsed[*evaluate.Recipe]{&f.head, noRecipe, "NAME", parseHeadRecipe}
	flags.Var(oneOf{head, append(names, bf16Recipe)}, "head", "recipe of head and embedding, or bf16")
	choiceFlag(cmd, &f.cache, "cache", "how keys and values are kept", named(generate.CacheFormats())...)
	flags.BoolVar(&f.invariant, "batch-invariant", false,
		"refuse recipes under which tokens depend on what they are run with")
	flags.BoolVar(&f.ids, "ids", false, "take and print IDs of tokens instead of text")
	workersFlag(cmd, &f.workers)
	jsonFlag(cmd, &f.asJSON)
	return cmd
}

// parseHeadRecipe is parseGenerateRecipe, or bf16.
func parseHeadRecipe(name string) (*evaluate.Recipe, error) {
	if name != bf16Recipe {
		return parseGenerateRecipe(name)
	}
	r, err := evaluate.ParseRecipe(name)
	return &r, err
}

// parseGenerateRecipe returns the recipe of a name; nil is none.
func parseGenerateRecipe(name string) (*evaluate.Recipe, error) {
	if name == noRecipe {
		return nil, nil
	}
	r, err := evaluate.ParseRecipe(name)
	if err != nil {
		return nil, err
	}
	if r.Input.Recipe == nil || r.Weight.Recipe == nil {
		return nil, fmt.Errorf("recipe %s rounds values and has no codes: want fp8, another one, "+
			"or none", name)
	}
	return &r, nil
}
