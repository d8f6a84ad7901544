package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/nn/evaluate"
	"github.com/octavo-fp8/octavo/nn/generate"
)

const generateLong = `Generate continues prompts with a Hugging Face Llama or a DeepSeek-V3, in any
layout that convert reads, on this machine's processors, and prints the text as
it comes. Weights of linear layers are FP8; a cache keeps keys and values of
earlier tokens in FP8. Each token runs through the model once.

Prompts are each --prompt, the text of --prompt-file, each line of --prompts, or
standard input. The tokenizer.json beside the model turns text into tokens and
back; that of octavo train --save takes bytes. With --ids prompts and output are
token IDs.

--prompts ignores blank lines. If its name ends in .jsonl, a line is a JSON
string, a list of tokens, or an object whose "prompt" is one of these; its
"tokens", "temperature", "topK", "topP" and "seed" override the flags.

--batch prompts run at once: a step reads the weights once and gives each prompt
a token. When one ends, the next begins. Texts are printed in the order of the
prompts, each under a line that repeats its prompt; the first text that has not
ended is printed as it comes.

A recipe is one of train's --recipe or a profile as in inspect. It applies to
inputs and weights of all linear layers except routers and head, which stay
FP32; none multiplies the loaded weights in FP32. The cache has a scale for each
token and head, or the model's k_scale and v_scale. Attention multiplies BF16
queries with the cache.

Each token is the most likely one or, with --temperature, drawn at random from
the --top-k most likely ones and, of those, the fewest that have --top-p of the
probability. The same seed gives the same tokens on every machine, also for the
same prompt twice in a batch. A text ends at the model's end of text
(eos_token_id), after --tokens, or when the context is full. A prompt longer
than the context is an error.

A request's tokens and probabilities (logProbs in --json) are the same bits
alone and in any batch if each token's input has scales of its own;
--batch-invariant refuses other recipes.

The last line, on standard error, is the speed, of prompts and of what follows,
and the share of the memory read rate that was used. Unless --quiet is given
that rate is measured then: all threads read 256 MiB nine times, and the fastest
counts.`

const generateExample = `  octavo generate --model Llama-3.2-1B --prompt 'Once upon a time'
  octavo generate --model model --temperature 0.8 --top-p 0.9 --seed 7 < prompt
  octavo generate --model model --prompts prompts.txt --batch-invariant --json
  octavo generate --model s.safetensors --ids --prompt '1 403' --recipe none`

// noRecipe is the recipe of those that multiply weights as they were loaded.
const noRecipe = "none"

// generateFlags are the flags of generate.
type generateFlags struct {
	model                   string
	prompts                 []string
	promptFile, promptsFile string
	tokens, context, batch  int
	sampling                generate.Sampling
	recipe                  *evaluate.Recipe // nil: none
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
		Long:    generateLong,
		Example: generateExample,
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
		return name == "bf16" // which has no codes; parsing all recipes here takes a millisecond
	}), noRecipe)
	flags.Var(oneOf{recipe, names}, "recipe",
		"recipe of weights and of what they are multiplied with")
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
